package import Postgres

/// The books of moves between databases, in a schema of their own: `departure` and `departed` where jobs leave, `arrival` and `arrived` where they
/// come to. Made by the first move, by the owner of the schema.
///
/// No transaction spans two databases. Each step is one transaction in one database, asks for the state that it needs under a lock, and may be
/// repeated, also while an earlier call of it still runs: see deploy/guides/databases.md.
package enum MoveBooks {
    /// Where a move stands, in the database that the jobs leave. `taking` goes to `finished` or `undoing`, which are for good; these go to
    /// `done` and `undone`.
    package enum State: String, Sendable {
        case taking, finished, done, undoing, undone
    }

    package struct Departure: Sendable, Equatable {
        package var id: String
        package var tenant: String
        package var target: String
        package var state: State
        /// Those that it has taken, and those that are gone for good.
        package var taken: Int
        package var moved: Int
    }

    package static func open(on connection: Connection) async throws(PostgresError) {
        // Making an index waits for all who write, and another call of the same move may be about to.
        guard try await !exist(on: connection) else { return }
        try await connection.run(script: books)
    }

    /// Which row says how far the move is.
    enum Side {
        case departure, arrival

        fileprivate var lock: SQL {
            switch self {
            case .departure:
                """
                select case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) end
                  from millrace_move.departure d where d.id = $1::uuid for update
                """
            case .arrival:
                """
                select case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) end
                  from millrace_move.arrival a where a.id = $1::uuid for update
                """
            }
        }
    }

    /// A step, under the lock of the move's row. The lock is taken in a statement of its own: one that waits for it inside a longer statement sees
    /// what was there before it waited, and would do what another call has done meanwhile. A server that crashes keeps the step, because the
    /// other database goes by it.
    @discardableResult
    static func step<Value: Sendable>(
        _ side: Side, of move: Departure, on connection: Connection,
        _ body: @Sendable (Connection) async throws(PostgresError) -> Value
    ) async throws(PostgresError) -> Value {
        try await connection.transaction { connection throws(PostgresError) in
            try await connection.execute(side.lock, [.text(move.id)])
            return try await body(connection)
        }
    }

    /// False: there has never been a move here.
    package static func exist(on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select pg_catalog.to_regclass('millrace_move.departure') is not null")
    }

    /// All, or those of a tenant that have not ended; the newest first.
    package static func departures(
        of tenant: String?, onlyOpen: Bool, on connection: Connection
    ) async throws(PostgresError) -> [Departure] {
        try await connection.query(
            """
            select d.id::text, d.tenant, d.target, d.state, (select count(*) from millrace_move.departed x where x.move = d.id), d.moved
              from millrace_move.departure d
             where ($1::text is null or d.tenant = $1) and (not $2 or d.state in ('taking', 'finished', 'undoing'))
             order by d.begun_at desc limit 1000
            """, [.text(tenant), .bool(onlyOpen)]
        ) { row throws(PostgresError) in
            guard let state = State(rawValue: try row.string(3)) else {
                throw .misconfigured(
                    reason: "a move is in the state \(try row.string(3)), which this program does not know")
            }
            return Departure(
                id: try row.string(0), tenant: try row.string(1), target: try row.string(2), state: state,
                taken: Int(try row.int(4)), moved: Int(try row.int(5)))
        }
    }

    /// One call at a time makes them, and no migration runs meanwhile: only the owner of the schema can take this lock.
    private static let books: SQL = """
        lock table millrace.migration in share row exclusive mode;
        create schema if not exists millrace_move;
        create table if not exists millrace_move.departure (
            id uuid primary key,
            tenant text not null,
            target text not null,
            state text not null default 'taking',
            begun_at timestamptz not null default pg_catalog.clock_timestamp(),
            moved bigint not null default 0,
            constraint a_departure_has_a_known_state check (state in ('taking', 'finished', 'done', 'undoing', 'undone'))
        );
        create unique index if not exists departure_open on millrace_move.departure (tenant)
            where state in ('taking', 'finished', 'undoing');
        create table if not exists millrace_move.departed (
            move uuid not null,
            job bigint not null,
            was text not null,
            queue int not null,
            kind int not null,
            lane int not null,
            due timestamptz,
            gate bigint,
            attempt smallint not null,
            crashes smallint not null,
            content jsonb not null,
            staged boolean not null default false,
            primary key (move, job)
        );
        create index if not exists departed_unstaged on millrace_move.departed (move, job) where not staged;
        create table if not exists millrace_move.arrival (
            id uuid primary key,
            source text not null,
            state text not null default 'open',
            constraint an_arrival_has_a_known_state check (state in ('open', 'finished', 'undone'))
        );
        create table if not exists millrace_move.arrived (
            move uuid not null,
            job bigint not null,
            content jsonb not null,
            new_job bigint,
            primary key (move, job)
        );
        create index if not exists arrived_waiting on millrace_move.arrived (move, job) where new_job is null;
        """
}
