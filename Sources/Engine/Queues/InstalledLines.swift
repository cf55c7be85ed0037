import Postgres
import Schema

/// Which migrations were applied, by line: the core's and each room's.
enum InstalledLines: Equatable {
    /// No migration was ever applied.
    case none
    /// From before rooms had lines of their own: the last number of the one line.
    case oneLine(Int)
    /// The last number of each line.
    case lines([String: Int])

    var isEmpty: Bool { self == .none }

    /// Creates the schema and the table of migrations. Nothing here fails when they exist already, even without the right to create
    /// schemas.
    static func makeTable(on connection: Connection) async throws(PostgresError) {
        try await connection.run(
            script: """
                set local client_min_messages = warning;
                do $$ begin
                    if to_regnamespace('millrace') is null then
                        create schema millrace;
                    end if;
                end $$;
                create table if not exists millrace.migration (
                    number int not null,
                    name text not null,
                    applied_at timestamptz not null default clock_timestamp(),
                    line text not null default 'core',
                    primary key (line, number)
                )
                """)
    }

    static func read(on connection: Connection) async throws(PostgresError) -> InstalledLines {
        let hasLines = try await connection.truth(
            """
            select exists (select from pg_attribute a
                            where a.attrelid = 'millrace.migration'::regclass and a.attname = 'line' and not a.attisdropped)
            """)
        let statement: SQL =
            hasLines
            ? "select m.line, max(m.number) from millrace.migration m group by m.line"
            : "select 'core', max(m.number) from millrace.migration m having count(*) > 0"
        let numbers = try await connection.query(statement) { row throws(PostgresError) in
            (try row.string(0), Int(try row.int(1)))
        }
        guard let first = numbers.first else { return .none }
        return hasLines ? .lines(Dictionary(numbers) { first, _ in first }) : .oneLine(first.1)
    }

    /// Before the table has lines there is only the core's.
    static func note(_ step: MigrationPlan.Step, on connection: Connection) async throws(PostgresError) {
        let number = Parameter.int4(Int32(step.migration.number))
        if step.line == "core" {
            try await connection.execute(
                "insert into millrace.migration (number, name) values ($1, $2)", [number, .text(step.migration.name)])
        } else {
            try await connection.execute(
                "insert into millrace.migration (number, name, line) values ($1, $2, $3)",
                [number, .text(step.migration.name), .text(step.line)])
        }
    }
}
