import FoundationEssentials
import Gateway
import Postgres
import TestSupport
import Testing

@Suite struct GatewayDatabaseTests {
    @Test func `a failed statement is named by its place, and nothing of the others is kept`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.execute("create table public.kept (value int)")
            let pool = Pool(database.options, size: 1)
            let gateway = GatewayDatabase(pool: pool, role: "none")
            let caller = GatewayCaller(subject: "ada", claims: Array(#"{"sub": "ada"}"#.utf8), expires: .distantFuture)
            let insert = Statement("insert into public.kept values (1)")
            await #expect(throws: FailedStatement.self) {
                _ = try await gateway.run([insert, Statement("select 1/0")], as: caller) { _, _ in 0 }
            }
            do {
                _ = try await gateway.run([insert, Statement("select 1/0")], as: caller) { _, _ in 0 }
            } catch let failed as FailedStatement {
                #expect(failed.index == 1 && failed.error.sqlState == "22012")
            }
            #expect(try await connection.int("select count(*) from public.kept") == 0)
            let answers = try await gateway.run(
                [
                    insert, Statement("select current_setting('request.jwt.claims')"),
                    Statement("select current_user::text"),
                ],
                as: caller
            ) { _, row throws(PostgresError) in try row.string(0) }
            #expect(answers[0] == [] && answers[1] == [#"{"sub": "ada"}"#])
            // The next call of the same connection is nobody's.
            let after = try await pool.withConnection { connection throws(PostgresError) in
                try await connection.query("select coalesce(current_setting('request.jwt.claims', true), '')") {
                    row throws(PostgresError) in try row.string(0)
                }
            }
            #expect(after == [""])
            await pool.close()
            await connection.close()
        }
    }
}
