package import Postgres

/// What happens in the database that jobs come to.
extension MoveBooks {
    /// False: it was undone there.
    package static func expect(
        _ move: Departure, from source: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.execute(
            "insert into millrace_move.arrival (id, source) values ($1::uuid, $2) on conflict do nothing",
            [.text(move.id), .text(source)])
        return try await connection.truth(
            "select exists (select from millrace_move.arrival a where a.id = $1::uuid and a.state <> 'undone')",
            [.text(move.id)])
    }

    /// Writes jobs down that are not to run yet. False: the arrival is closed, and nothing was written.
    package static func stage(
        _ contents: [UInt8], of move: Departure, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await step(.arrival, of: move, on: connection) { connection throws(PostgresError) in
            try await connection.query(
                """
                with open as materialized (
                    select a.id from millrace_move.arrival a where a.id = $1::uuid and a.state = 'open' for share),
                written as (
                    insert into millrace_move.arrived (move, job, content)
                    select $1::uuid, x.job, x.content from open cross join jsonb_to_recordset($2) x(job bigint, content jsonb)
                        on conflict do nothing)
                select count(*) > 0 from open
                """, [.text(move.id), .json(contents)], deadline: .seconds(120)
            ) { row throws(PostgresError) in try row.bool(0) }[0]
        }
    }

    /// Makes jobs of those that were written down: only once it was decided. Each is made once, by the row that says so. Returns how many.
    package static func release(
        _ move: Departure, most: Int, on connection: Connection
    ) async throws(PostgresError) -> Int {
        try await step(.arrival, of: move, on: connection) { connection throws(PostgresError) in
            let made = try await connection.query(
                """
                with open as materialized (
                    select a.id from millrace_move.arrival a where a.id = $1::uuid and a.state = 'open' for update),
                next as materialized (
                    select a.job, a.content as c from open join millrace_move.arrived a on a.move = open.id
                     where a.new_job is null order by a.job limit $2),
                made as materialized (
                    select n.job, millrace.enqueue(n.c ->> 'kind', n.c -> 'args', n.c ->> 'queue', (n.c ->> 'priority')::int,
                               (n.c ->> 'run_at')::timestamptz, null, 'skip', n.c ->> 'limit_key', n.c ->> 'tenant',
                               (n.c ->> 'max_attempts')::int,
                               case when jsonb_typeof(n.c -> 'tags') = 'array'
                                    then array(select jsonb_array_elements_text(n.c -> 'tags')) end,
                               nullif(n.c -> 'metadata', 'null'), nullif(n.c -> 'options', 'null')) as new_job
                      from next n)
                update millrace_move.arrived a set new_job = m.new_job from made m where a.move = $1::uuid and a.job = m.job
                returning m.new_job
                """, [.text(move.id), .int4(Int32(most))], deadline: .seconds(120)
            ) { row throws(PostgresError) in try row.int(0) }
            // Whose they are, and how long they have waited, does not change.
            try await connection.execute(
                """
                update millrace.job j
                   set owner = a.content ->> 'owner', enqueued_at = (a.content ->> 'enqueued_at')::timestamptz,
                       limit_scope = a.content ->> 'limit_scope'
                  from millrace_move.arrived a where a.move = $1::uuid and a.new_job = any ($2) and j.id = a.new_job
                """, [.text(move.id), .int8s(made)])
            return made.count
        }
    }

    /// All have become jobs.
    package static func arrive(_ move: Departure, on connection: Connection) async throws(PostgresError) {
        try await step(.arrival, of: move, on: connection) { connection throws(PostgresError) in
            try await connection.execute(
                """
                with over as (
                    update millrace_move.arrival a set state = 'finished'
                     where a.id = $1::uuid and a.state = 'open'
                       and not exists (select from millrace_move.arrived x where x.move = a.id and x.new_job is null))
                select
                """, [.text(move.id)])
        }
    }

    /// Whether all of these have become jobs there.
    package static func has(
        _ jobs: [Int64], of move: Departure, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.query(
            """
            select count(*) from millrace_move.arrived x where x.move = $1::uuid and x.job = any ($2) and x.new_job is not null
            """, [.text(move.id), .int8s(jobs)]
        ) { row throws(PostgresError) in Int(try row.int(0)) == jobs.count }[0]
    }

    /// Forgets what it has written down; the number of the move stays, so that nothing comes late.
    package static func forget(_ move: Departure, on connection: Connection) async throws(PostgresError) {
        try await connection.execute(
            """
            delete from millrace_move.arrived x
             where x.move = $1::uuid and exists (select from millrace_move.arrival a where a.id = x.move and a.state <> 'open')
            """, [.text(move.id)])
    }

    /// Nothing arrives any more, whatever is still on its way.
    package static func refuse(
        _ move: Departure, from source: String, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            """
            insert into millrace_move.arrival as a (id, source, state) values ($1::uuid, $2, 'undone')
                on conflict (id) do update set state = 'undone' where a.state = 'open'
            """, [.text(move.id), .text(source)])
        try await forget(move, on: connection)
    }
}
