import Postgres
import TestSupport

extension SequenceWorld {
    func faults() async throws -> [String] {
        try await wrong + worker.faults() + deaf()
            + worker.column(
                """
                select 'job ' || l.job || ' was charged ' || charged || ' times and refunded ' || refunded || ' times'
                  from (select job, count(*) filter (where what = 'charged') as charged, count(*) filter (where what = 'refunded') as refunded,
                               bool_or(what in ('waived', 'fork')) as is_open from public.ledger group by job) l
                 where not is_open and charged - refunded not in (0, 1)
                union all
                select 'signal ' || (s.value ->> 'value') || ' was taken by jobs ' || string_agg(s.job::text, ' and ') from millrace.step s
                 where s.asked ->> 'what' = 'signal' and s.value ->> 'value' <> '0' and not exists (select from millrace.fork f where f.job = s.job)
                   and not exists (select from millrace.signal x where x.payload = s.value -> 'value' and x.to_all)
                 group by s.value ->> 'value' having count(*) > 1
                """)
    }

    func deaf() async throws -> [String] { try await worker.deaf() }

    /// Jobs that are there, and that who asks for them does not find.
    func hidden() async throws -> [String] {
        try await worker.column(
            "select 'job ' || j.id || ' is not found' from millrace.job j where not exists (select from millrace.job(j.id))"
        )
    }

    /// Of all that has come to its end: what a job has done and not undone is on record, and if the job has not succeeded somebody wanted it so, or its
    /// undo has failed for good.
    func verdicts() async throws -> [String] {
        try await worker.column(
            """
            select 'job ' || l.job || ', ' || coalesce((array['succeeded', 'cancelled', 'dead'])[h.outcome], 'deleted') || ', was charged ' || charged || ' times and refunded ' || refunded || ' times'
              from (select job, count(*) filter (where what = 'charged') as charged, count(*) filter (where what = 'refunded') as refunded,
                           bool_or(what in ('waived', 'fork')) as is_open, bool_or(what = 'delivered') as is_delivered from public.ledger group by job) l
              left join millrace.history h on h.id = l.job and h.outcome in (1, 2, 3)
             where not is_open and (h.id is not null or not is_delivered) and charged - refunded <>
                   case when h.outcome = 1 then (select count(*) from millrace.step s where s.job = l.job and s.name = 'charge')
                        else (select count(*) from millrace.undo u join millrace.history x on x.id = u.undo_job and x.outcome in (2, 3) where u.job = l.job) end
            union all
            select 'the answer of job ' || a.job || ' was given, and it waits' from millrace.approval a join millrace.wait w on w.job = a.job and w.key = a.id::text
              join millrace.timer d on d.job = w.job and d.due = w.place where a.answered_at is not null
            """)
    }
}

extension Connection {
    /// Jobs that wait for a signal which is kept for them, and that nobody will look at.
    func deaf() async throws -> [String] {
        try await column(
            """
            select 'job ' || w.job || ' waits for the signal ' || w.name || ', which is kept' from millrace.wait w
              join millrace.timer d on d.job = w.job and d.due = w.place
              join millrace.signal s on s.name = w.name and s.key = w.key and s.state < 2 and s.expires_at > millrace.now()
             where w.look_at is null and s.state = 1 and not exists (select from millrace.signal_taken t where t.signal = s.seq and t.job = w.job)
            """)
    }

    /// Jobs that have no end though nothing is left to be done, and what they wait for.
    func endless() async throws -> [String] {
        try await column(
            """
            select 'job ' || j.id || ' never ends, and waits for ' ||
                   coalesce((select string_agg(e.pred::text, ' and ') from millrace.edge e where e.succ = j.id and e.outcome is null), 'nobody') ||
                   coalesce((select ' in the line ' || r::text from millrace.ready r where r.job = j.id), '') ||
                   coalesce((select ' until ' || d::text from millrace.timer d where d.job = j.id), '') ||
                   coalesce((select ' aside ' || p::text from millrace.parked p where p.job = j.id), '')
              from millrace.job j where not exists (select from millrace.history h where h.id = j.id and h.outcome in (1, 2, 3))
            """)
    }

    /// Everything that is wrong with jobs and what stands beside them now, in words.
    func faults() async throws -> [String] {
        try await column(
            """
            with running as materialized (\(SequenceWorld.unfinished)
            ), places as materialized (
                select job, 'ready' as place from millrace.ready union all select job, 'timer' from millrace.timer
                union all select job, 'parked' from millrace.parked union all select job, 'blocked' from millrace.blocked
                union all select next, 'follows' from millrace.unique_lock where next is not null
                union all select job, 'running' from running
                union all select id, 'ended' from millrace.history h where outcome in (1, 2, 3) and exists (select from millrace.job j where j.id = h.id)
            )
            select 'job ' || job || ' is in ' || string_agg(place, ' and ') from places group by job having count(*) > 1
            union all
            select 'job ' || id || ' is nowhere' from millrace.job j where not exists (select from places p where p.job = j.id)
            union all
            select 'job ' || job || ' is ' || place || ' and does not exist' from places p where not exists (select from millrace.job j where j.id = p.job)
            union all
            select 'the key ' || min(j.unique_key) || ' is held by jobs ' || string_agg(j.id::text, ' and ')
              from places p join millrace.job j on j.id = p.job where j.unique_hash is not null and p.place not in ('follows', 'ended')
             group by j.unique_hash having count(*) > 1
            union all
            select 'gate ' || gate || ' counts ' || counted || ' and the leases hold ' || held from millrace.slots_audit() where counted <> held
            union all
            select 'job ' || j.id || ' of tenant ' || coalesce(j.tenant, '-') || ' stands in the line of ' || coalesce(q.tenant, '-')
              from millrace.job j join millrace.queue q on q.id = j.queue where j.tenant is distinct from q.tenant
            union all
            select count(*) || ' jobs of tenant ' || j.tenant || ' run at once'
              from running r join millrace.job j on j.id = r.job where j.tenant is not null group by j.tenant having count(*) > 2
            union all
            select 'job ' || e.succ || ' runs before the run that made it has succeeded'
              from millrace.edge e join running r on r.job = e.succ where e.number is not null and e.outcome is null
            union all
            select 'job ' || u.job || ' is ' || p.place || ' while job ' || u.undo_job || ', which undoes its step ' || u.step || ', is ' || q.place
              from millrace.undo u join places p on p.job = u.job and p.place <> 'ended' join places q on q.job = u.undo_job and q.place <> 'blocked'
            union all
            select 'job ' || u.undo_job || ' undoes a step that is not on record' from millrace.undo u
             where not exists (select from millrace.step s where s.job = u.job and s.name = u.step)
            union all
            select 'step ' || u.step || ' of job ' || u.job || ' is undone by job ' || u.undo_job || ', which is not there' from millrace.undo u
             where not exists (select from millrace.job j where j.id = u.undo_job)
            union all
            select 'job ' || w.job || ' waits for its children as one that was enqueued after them' from millrace.wait w
              join millrace.blocked b on b.job = w.job where w.what = 3 and b.starts <> 2
            union all
            select 'job ' || d.job || ' stands still, and waits for nothing' from millrace.timer d
             where d.due > millrace.now() + interval '70 years' and not exists (select from millrace.wait w where w.job = d.job and w.place = d.due)
            union all
            select 'job ' || w.job || ' is gone, and its wait is there' from millrace.wait w where not exists (select from millrace.job j where j.id = w.job)
            """)
    }
}
