package import Postgres

/// What happens in the database that jobs leave.
extension MoveBooks {
    /// Nothing, if the tenant is on its way already.
    package static func depart(
        tenant: String, target: String, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            """
            insert into millrace_move.departure (id, tenant, target) values (gen_random_uuid(), $1, $2) on conflict do nothing
            """, [.text(tenant), .text(target)])
    }

    /// Takes jobs of the tenant out of their places, so that no worker can claim them, and writes down what they are. Returns how many. Those stay
    /// that have begun, wait for something or are waited for, hold a unique key, or name a row of a room, which does not move: they run where
    /// they are.
    package static func take(
        _ move: Departure, most: Int, on connection: Connection
    ) async throws(PostgresError) -> Int {
        try await step(.departure, of: move, on: connection) { connection throws(PostgresError) in
            try await connection.query(
                """
                with open as materialized (
                    select d.id from millrace_move.departure d where d.id = $1::uuid and d.state = 'taking' for update),
                lines as materialized (select q.id from open cross join millrace.queue q where q.tenant = $2),
                rooms as materialized (
                    select k.id from millrace.kind k where k.name like any (array(select h.said from millrace.hooks_list('rows', must => true) h))),
                waiting as (
                    select r.job from lines l join millrace.ready r on r.queue = l.id where r.attempt = 0 and r.crashes = 0
                    union all
                    select t.job from millrace.timer t where t.queue in (select l.id from lines l) and t.attempt = 0 and t.crashes = 0
                    union all
                    select p.job from millrace.parked p where p.queue in (select l.id from lines l) and p.attempt = 0 and p.crashes = 0),
                found as materialized (
                    select w.job from waiting w cross join lateral (select * from millrace.job x where x.id = w.job offset 0) j
                     where j.tenant = $2 and j.unique_hash is null and j.kind not in (select k.id from rooms k)
                       and not coalesce(j.options ?| array['after', 'fence', 'before', 'undo'], false)
                       and not exists (select from millrace.edge e where e.succ = w.job)
                       and not exists (select from millrace.edge e where e.pred = w.job)
                       and not exists (select from millrace.step s where s.job = w.job)
                       and not exists (select from millrace.wait x where x.job = w.job)
                       and not exists (select from millrace.history h where h.id = w.job offset 0)
                     limit $3),
                taken as materialized (
                    select t.* from millrace.places_take(array(select f.job from found f), array['timer', 'ready', 'parked']) t),
                written as (
                    insert into millrace_move.departed (move, job, was, queue, kind, lane, due, gate, attempt, crashes, content)
                    select $1::uuid, t.job, t.was, t.queue, t.kind, t.lane, t.due, t.gate, t.attempt, t.crashes,
                           jsonb_build_object('kind', k.name, 'args', j.args, 'queue', q.name, 'priority', j.lane / 4,
                               'run_at', coalesce(t.due, j.run_at), 'limit_key', j.limit_key, 'limit_scope', j.limit_scope, 'tenant', j.tenant,
                               'max_attempts', j.max_attempts, 'tags', j.tags, 'metadata', j.metadata, 'options', j.options, 'owner', j.owner,
                               'enqueued_at', j.enqueued_at)
                      from taken t cross join lateral (select * from millrace.job x where x.id = t.job offset 0) j
                      join millrace.kind k on k.id = j.kind join millrace.queue q on q.id = j.queue
                    returning 1)
                select count(*) from written
                """, [.text(move.id), .text(move.tenant), .int4(Int32(most))], deadline: .seconds(120)
            ) { row throws(PostgresError) in Int(try row.int(0)) }[0]
        }
    }

    /// Jobs that the other database may not have yet: their numbers, and what they are, as one array. At most some megabytes.
    package static func unstaged(
        _ move: Departure, most: Int, on connection: Connection
    ) async throws(PostgresError) -> (jobs: [Int64], contents: [UInt8]) {
        try await connection.query(
            """
            with next as materialized (
                select x.job, x.content, sum(octet_length(x.content::text)) over (order by x.job) as upto, row_number() over (order by x.job) as place
                  from (select y.job, y.content from millrace_move.departed y where y.move = $1::uuid and not y.staged order by y.job limit $2) x)
            select coalesce(array_agg(n.job order by n.job), '{}'),
                   coalesce(jsonb_agg(jsonb_build_object('job', n.job, 'content', n.content) order by n.job), '[]')
              from next n where n.place = 1 or n.upto <= 4194304
            """, [.text(move.id), .int4(Int32(most))], deadline: .seconds(120)
        ) { row throws(PostgresError) in (try row.ints(0), try row.json(1)) }[0]
    }

    package static func staged(
        _ jobs: [Int64], of move: Departure, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            "update millrace_move.departed x set staged = true where x.move = $1::uuid and x.job = any ($2)",
            [.text(move.id), .int8s(jobs)])
    }

    /// The decision. From here on the jobs are the other database's. False: it was decided otherwise, or something is not staged.
    package static func finish(_ move: Departure, on connection: Connection) async throws(PostgresError) -> Bool {
        try await step(.departure, of: move, on: connection) { connection throws(PostgresError) in
            try await connection.query(
                """
                update millrace_move.departure d set state = 'finished'
                 where d.id = $1::uuid and d.state = 'taking'
                   and not exists (select from millrace_move.departed x where x.move = d.id and not x.staged)
                returning true
                """, [.text(move.id)]
            ) { row throws(PostgresError) in try row.bool(0) }.first ?? false
        }
    }

    /// The other decision. False: it was finished before.
    package static func beginUndo(_ move: Departure, on connection: Connection) async throws(PostgresError) -> Bool {
        try await step(.departure, of: move, on: connection) { connection throws(PostgresError) in
            try await connection.query(
                """
                update millrace_move.departure d set state = 'undoing'
                 where d.id = $1::uuid and d.state in ('taking', 'undoing') returning true
                """, [.text(move.id)]
            ) { row throws(PostgresError) in try row.bool(0) }.first ?? false
        }
    }

    /// Puts jobs back where they were, at the end of their lines. Returns how many.
    package static func putBack(
        _ move: Departure, most: Int, on connection: Connection
    ) async throws(PostgresError) -> Int {
        try await step(.departure, of: move, on: connection) { connection throws(PostgresError) in
            // The transaction's id before numbers are drawn: see enqueue_one.
            try await connection.query(
                """
                with open as materialized (
                    select d.id from millrace_move.departure d
                     where d.id = $1::uuid and d.state = 'undoing' and pg_current_xact_id() is not null for update),
                gone as (
                    delete from millrace_move.departed x using open
                     where x.move = open.id
                       and x.job = any (array(select y.job from millrace_move.departed y where y.move = $1::uuid order by y.job limit $2))
                    returning x.*),
                again as (
                    -- One whose row the housekeeping has swept away meanwhile.
                    insert into millrace.job (id, kind, queue, lane, max_attempts, enqueued_at, run_at, args, limit_key, limit_scope, tenant, owner,
                        tags, metadata, options)
                    select g.job, g.kind, g.queue, (g.content ->> 'priority')::int * 4 + 1, (g.content ->> 'max_attempts')::smallint,
                           (g.content ->> 'enqueued_at')::timestamptz, (g.content ->> 'run_at')::timestamptz, g.content -> 'args',
                           g.content ->> 'limit_key', g.content ->> 'limit_scope', g.content ->> 'tenant', g.content ->> 'owner',
                           case when jsonb_typeof(g.content -> 'tags') = 'array'
                                then array(select jsonb_array_elements_text(g.content -> 'tags')) end,
                           nullif(g.content -> 'metadata', 'null'), nullif(g.content -> 'options', 'null')
                      from gone g where not exists (select from millrace.job j where j.id = g.job)),
                put as materialized (
                    select millrace.place_put(g.job, g.was, case g.was when 'ready' then nextval('millrace.seq') end, g.queue, g.kind, g.lane,
                               g.due, g.gate, g.attempt, g.crashes, null)
                      from (select * from gone order by job) g)
                select count(*) from put
                """, [.text(move.id), .int4(Int32(most))], deadline: .seconds(120)
            ) { row throws(PostgresError) in Int(try row.int(0)) }[0]
        }
    }

    /// Some of those that are still in its books.
    package static func next(
        _ move: Departure, most: Int, on connection: Connection
    ) async throws(PostgresError) -> [Int64] {
        try await connection.query(
            "select x.job from millrace_move.departed x where x.move = $1::uuid order by x.job limit $2",
            [.text(move.id), .int4(Int32(most))]
        ) { row throws(PostgresError) in try row.int(0) }
    }

    /// Deletes these for good: the other database has them. Returns how many.
    package static func purge(
        _ jobs: [Int64], of move: Departure, on connection: Connection
    ) async throws(PostgresError) -> Int {
        try await step(.departure, of: move, on: connection) { connection throws(PostgresError) in
            try await connection.query(
                """
                with open as materialized (
                    select d.id from millrace_move.departure d where d.id = $1::uuid and d.state = 'finished' for update),
                gone as (
                    delete from millrace_move.departed x using open
                     where x.move = open.id and x.job = any ($2) returning x.job),
                ids as materialized (select array_agg(g.job) as jobs from gone g),
                forgotten as materialized (
                    select millrace.trace_forget(i.jobs), millrace.history_forget(i.jobs) from ids i where i.jobs is not null),
                counted as (
                    update millrace_move.departure d set moved = d.moved + (select count(*) from gone)
                     where d.id = $1::uuid and exists (select from gone))
                select (select count(*) from gone) + 0 * (select count(*) from forgotten)
                """, [.text(move.id), .int8s(jobs)], deadline: .seconds(120)
            ) { row throws(PostgresError) in Int(try row.int(0)) }[0]
        }
    }

    /// Nothing is left in its books; as long as something is, it goes on.
    package static func end(
        _ move: Departure, as state: State, on connection: Connection
    ) async throws(PostgresError) {
        try await step(.departure, of: move, on: connection) { connection throws(PostgresError) in
            try await connection.execute(
                """
                update millrace_move.departure d set state = $2
                 where d.id = $1::uuid and d.state = case $2 when 'done' then 'finished' else 'undoing' end
                   and not exists (select from millrace_move.departed x where x.move = d.id)
                """, [.text(move.id), .text(state.rawValue)])
        }
    }

    /// How many waiting jobs of the tenant are still there.
    package static func waiting(_ tenant: String, on connection: Connection) async throws(PostgresError) -> Int {
        try await connection.query(
            """
            with lines as materialized (select q.id from millrace.queue q where q.tenant = $1)
            select (select count(*) from lines l join millrace.ready r on r.queue = l.id)
                 + (select count(*) from millrace.timer t where t.queue in (select l.id from lines l))
                 + (select count(*) from millrace.parked p where p.queue in (select l.id from lines l))
            """, [.text(tenant)], deadline: .seconds(120)
        ) { row throws(PostgresError) in Int(try row.int(0)) }[0]
    }
}
