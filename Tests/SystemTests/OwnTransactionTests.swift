import MillraceJobs
import Postgres
import Telemetry
import TestSupport
import Testing
import Workers

@Suite struct OwnTransactionTests {
    @Test func `a handler's own transaction ends its job together with its writes`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                create table public.effect (job bigint);
                select millrace.enqueue_bulk('own', array(select '{}' from generate_series(1, 20)));
                select millrace.enqueue_bulk('plain', array(select '{}' from generate_series(1, 20)))
                """)
            let pool = Pool(database.options, size: 4)
            let worker = JobWorker(
                options: JobWorker.Options(database: database.options, name: "one"),
                handlers: [
                    Handler(kind: "own") { _, context in
                        let held = try await pool.withConnection { connection throws(PostgresError) in
                            try await connection.transaction { connection throws(PostgresError) in
                                try await connection.execute(
                                    "insert into public.effect values ($1)", [.int8(context.id)])
                                return try await connection.query(
                                    "select millrace.complete($1)", [.text(context.token)]
                                ) {
                                    row throws(PostgresError) in try row.bool(0)
                                }.first ?? false
                            }
                        }
                        return held ? .recorded : .retry()
                    },
                    Handler(kind: "plain") { _, _ in .done },
                ], log: .silent)
            let running = Task { try await worker.run() }
            try await eventually("all have ended, and no lease is left") {
                try await connection.int(
                    "select (select count(*) from millrace.history where outcome = 1) - (select count(*) from millrace.lease)"
                )
                    == 40
            }
            worker.drain()
            let report = try await running.value
            #expect(report.finished == 40 && report.refused == 0)
            #expect(try await connection.int("select count(distinct job) from public.effect") == 20)
            #expect(try await connection.int("select count(*) from public.effect") == 20)
            await pool.close()
            await connection.close()
        }
    }

    @Test func `a handler that only says that it has recorded its end is not believed`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let id = try await connection.int("select millrace.enqueue('liar')")
            let worker = JobWorker(
                options: JobWorker.Options(database: database.options, name: "one"),
                handlers: [Handler(kind: "liar") { _, context in context.attempt == 1 ? .recorded : .done }],
                log: .silent)
            let running = Task { try await worker.run() }
            try await eventually("it has been run again") {
                try await connection.value("select state || attempt from millrace.job(\(id))") == "succeeded2"
            }
            worker.drain()
            _ = try await running.value
            #expect(
                try await connection.value("select error from millrace.history where outcome = 4")?.contains("had not")
                    == true)
            await connection.close()
        }
    }

    @Test func `a token that is no longer live completes nothing`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            #expect(try await !connection.bool("select millrace.complete('1f-8-1')"))
            #expect(try await connection.refusal(of: "select millrace.complete('nonsense')")?.sqlState == "22023")
            await connection.close()
        }
    }
}
