import CommandKit
import Postgres

/// One room's work in one outage, as its tables tell of it.
struct RecoveryRoom: Sendable {
    let room: RecoveryServer.Room
    /// The outage that this work is of.
    let mark: String
    /// As the supervisor calls its provider.
    let provider: String

    /// Hands in this much, each a caller of its own.
    func handIn(_ count: Int, on connection: Connection) async throws(PostgresError) {
        let sql: SQL =
            switch room {
            case .mail, .doubts:
                "select count(millrace.mail_send(array[$1 || '-' || n || '@example.org'], $1, 'text')) from generate_series(1, $2::int) n"
            case .notices:
                """
                select count(millrace.notice_put('p' || n, 'note', 'sms', '+4930' || 100000 + n, '{}', $1 || '-' || n, millrace.now(), null, false))
                  from generate_series(1, $2::int) n
                """
            case .pushes:
                """
                with d as (
                    insert into millrace.device (token, person, platform, seen_at)
                    select md5(n::text) || md5('p' || n), 'p' || n, 'apns', millrace.now() from generate_series(1, $2::int) n
                        on conflict (token) do nothing)
                select count(millrace.notice_put('p' || n, 'note', 'push', md5(n::text) || md5('p' || n), '{}', $1 || '-' || n, millrace.now(), null, false))
                  from generate_series(1, $2::int) n
                """
            case .ai:
                """
                select count(millrace.ai_ask('sentiment', jsonb_build_object('text', $1 || '-' || n), 'recovery')) from generate_series(1, $2::int) n
                """
            case .batches:
                """
                select count(millrace.ai_ask('sentiment', jsonb_build_object('text', $1 || '-' || n), 'recovery', options => '{"may_wait": true}'))
                  from generate_series(1, $2::int) n
                """
            case .webhooks:
                "select count(millrace.event_publish('com.example.recovery', '/load', '{}', $1)) from generate_series(1, $2::int) n"
            }
        try await connection.execute(sql, [.text(mark), .int4(Int32(clamping: count))], deadline: .seconds(120))
        guard room == .batches else { return }
        // They are gathered every five minutes, which is not what is measured.
        try await connection.execute(
            """
            select count(millrace.reschedule_now(j.id, millrace.now()))
              from millrace.job j join millrace.kind k on k.id = j.kind join millrace.timer t on t.job = j.id
             where k.name = 'ai.batch' and j.args ? 'provider'
            """)
    }

    /// How long from now the first of its callers comes back and may call, as far as the breaker knows.
    func nextTry(on connection: Connection) async throws(PostgresError) -> Duration {
        let due: SQL =
            switch room {
            case .mail, .doubts:
                """
                select extract(epoch from min(coalesce(t.due, millrace.now())) - millrace.now())::float8
                  from millrace.mail m join millrace.mail_content c on c.message = m.id left join millrace.timer t on t.job = m.job
                 where c.subject = $1 and m.status <> 'accepted'
                """
            case .notices, .pushes:
                """
                select extract(epoch from min(coalesce(n.wait_until, n.due_at)) - millrace.now())::float8
                  from millrace.notice n where n.status in ('pending', 'attempting') and n.key like $1 || '-%'
                """
            case .ai:
                """
                select extract(epoch from min(coalesce(t.due, millrace.now())) - millrace.now())::float8
                  from millrace.ai_question q left join millrace.timer t on t.job = q.job where q.input ->> 'text' like $1 || '-%' and q.ended_at is null
                """
            case .batches:
                """
                select extract(epoch from min(coalesce(t.due, millrace.now())) - millrace.now())::float8
                  from millrace.ai_batch b join millrace.job j on j.args ->> 'batch' = b.id::text left join millrace.timer t on t.job = j.id
                 where b.id in (select q.batch from millrace.ai_question q where q.input ->> 'text' like $1 || '-%')
                """
            case .webhooks:
                """
                select extract(epoch from greatest(min(d.due_at), min(w.blocked_until)) - millrace.now())::float8
                  from millrace.webhook_delivery d join millrace.webhook w on w.id = d.webhook join millrace.event e on e.id = d.event
                 where d.state = 'pending' and e.subject = $1
                """
            }
        let open: SQL =
            "select extract(epoch from max(c.until) - millrace.now())::float8 from millrace.provider_circuit c where c.provider = $1 and c.state = 'open'"
        var latest = 0.0
        for (sql, name) in [(due, mark), (open, provider)] {
            let seconds =
                try await connection.query(sql, [.text(name)], deadline: .seconds(30)) {
                    row throws(PostgresError) in row.optionalDouble(0)
                }.first ?? nil
            latest = max(latest, seconds ?? 0)
        }
        return .seconds(latest)
    }

    /// How much of it has not been done, and how many tries all of it has used up.
    func rest(on connection: Connection) async throws(PostgresError) -> (open: Int, tries: Int) {
        let sql: SQL =
            switch room {
            case .mail, .doubts:
                """
                select count(*) filter (where m.status <> 'accepted'), coalesce(sum(m.attempts), 0)::bigint
                  from millrace.mail m join millrace.mail_content c on c.message = m.id where c.subject = $1
                """
            case .notices, .pushes:
                """
                select count(*) filter (where n.status <> 'accepted'), coalesce(sum(n.attempts), 0)::bigint
                  from millrace.notice n where n.key like $1 || '-%'
                """
            case .batches:
                """
                select (select count(*) from millrace.ai_question q left join millrace.ai_batch b on b.id = q.batch
                         where q.input ->> 'text' like $1 || '-%' and b.remote is null),
                       (select coalesce(sum(x.attempt), 0)::bigint
                          from millrace.ai_batch b join millrace.job j on j.args ->> 'batch' = b.id::text cross join lateral millrace.job(j.id) x
                         where b.id in (select q.batch from millrace.ai_question q where q.input ->> 'text' like $1 || '-%'))
                """
            case .ai:
                """
                select count(*) filter (where q.status <> 'answered'), coalesce(sum(coalesce(h.attempt, 0)), 0)::bigint
                  from millrace.ai_question q
                  left join lateral (select max(x.attempt) as attempt from millrace.history x where x.id = q.job) h on true
                 where q.input ->> 'text' like $1 || '-%'
                """
            case .webhooks:
                """
                select count(*) filter (where d.state <> 'delivered'), coalesce(sum(d.attempts), 0)::bigint
                  from millrace.webhook_delivery d join millrace.event e on e.id = d.event where e.subject = $1
                """
            }
        return try await connection.query(sql, [.text(mark)], deadline: .seconds(60)) { row throws(PostgresError) in
            (open: Int(try row.int(0)), tries: Int(try row.int(1)))
        }.first ?? (0, 0)
    }

    /// Nothing of it goes on: a batch that is sent is looked at, which would be a call of the next outage.
    func end(on connection: Connection) async throws(PostgresError) {
        guard room == .batches else { return }
        try await connection.execute(
            """
            select count(millrace.cancel(j.id)) from millrace.ai_batch b join millrace.job j on j.args ->> 'batch' = b.id::text
             where b.id in (select q.batch from millrace.ai_question q where q.input ->> 'text' like $1 || '-%')
            """, [.text(mark)], deadline: .seconds(60))
    }
}
