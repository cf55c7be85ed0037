import TestSupport
import Testing

@testable import Postgres

/// Statements that are sent at once, and stay on the server under names.
@Suite struct StatementPipelineTests {
    private func texts(_ statements: [Statement], on connection: Connection) async throws(FailedStatement) -> [[String]]
    {
        try await connection.transaction(of: statements) { _, row throws(PostgresError) in try row.string(0) }
    }

    @Test func `a statement is parsed once a connection, and one that cannot be parsed is not kept`() async throws {
        try await withConnection { connection in
            let one = Statement("select 'one' || $1", [.text("!")])
            let two = Statement("select 'two'")
            for _ in 0..<3 {
                #expect(try await texts([one, two, one], on: connection) == [["one!"], ["two"], ["one!"]])
            }
            let named = "select count(*) from pg_prepared_statements where statement like 'select ''%'"
            #expect(try await connection.int(named) == 2)
            for _ in 0..<2 {
                do {
                    _ = try await texts([one, Statement("select 'none' from nowhere"), two], on: connection)
                    Issue.record("it must fail")
                } catch let error as FailedStatement {
                    #expect(error.index == 1 && error.error.sqlState == "42P01")
                }
            }
            do {
                _ = try await texts([two, Statement("select 'new'"), Statement("select (1/0)::text")], on: connection)
                Issue.record("it must fail")
            } catch let error as FailedStatement {
                #expect(error.index == 2 && error.error.sqlState == "22012")
            }
            #expect(try await texts([Statement("select 'new'")], on: connection) == [["new"]])
            #expect(try await texts([one, two], on: connection) == [["one!"], ["two"]])
        }
    }

    @Test func `names that a pooler has lost are done without, and nothing is done twice`() async throws {
        try await withConnection { connection in
            try await connection.run("create table public.done (n int)")
            let insert = Statement("insert into public.done values (1) returning n::text")
            #expect(try await texts([insert], on: connection) == [["1"]])
            try await connection.run("deallocate all")
            #expect(try await texts([insert, insert], on: connection) == [["1"], ["1"]])
            #expect(try await connection.int("select count(*) from public.done") == 3)
            #expect(try await texts([insert], on: connection) == [["1"]])
        }
    }

    @Test func `a call is made of quoted names, known types and parameters`() async throws {
        try await withConnection { connection in
            try await connection.run(
                #"""
                create schema "s""x";
                create function "s""x"."f'""g"("p""; drop schema public; --" int, "q\" text[] default '{}') returns table ("a'\b" text)
                    language sql as $$ select $1 || array_to_string($2, '+') $$;
                """#)
            let sql = SQL.call(
                "f'\"g", in: "s\"x",
                [("p\"; drop schema public; --", .plain(.integer)), ("q\\", .list(.text))], giving: .column("a'\\b"))
            let answer = try await texts([Statement(sql, [.text("7"), .texts(["x", nil, "y"])])], on: connection)
            #expect(answer == [[#"[{"a'\\b" : "7x+y"}]"#]])
            // A combining mark makes one character of it and the quote before it.
            let marked = SQL.call("f\"\u{301}", in: "s", [], giving: .value)
            #expect(marked.text == "select to_json(\"s\".\"f\"\"\u{301}\"())::text")
            for name in ["text", "uuid[]", "timestamp with time zone[]", "double precision"] {
                #expect(SQLType(name)?.name == name)
            }
            for name in ["", "[]", "text[][]", "text; drop", "TEXT", "pg_class", "timestamp without time zone"] {
                #expect(SQLType(name) == nil)
            }
        }
    }
}
