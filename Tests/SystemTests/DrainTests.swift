import Foundation
import Postgres
import TestSupport
import Testing

@Suite struct DrainTests {
    @Test func `a stopped worker hands back what has not started, and loses and uses up nothing`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.enqueue_bulk('practice.sleep', array(select '{"ms": 8000}' from generate_series(1, 200)));
                select millrace.enqueue_bulk('practice.nothing', array(select '{}' from generate_series(1, 5000)), the_priority => 9)
                """)
            let worker = try await MillraceProcess.worker("one", database: database.url, slots: 200)
            try await eventually("200 run") { try await connection.int("select running from millrace.beat") == 200 }
            worker.signal(SIGTERM)
            #expect(try await worker.ended(within: .seconds(600)) == 0)
            #expect(worker.output.contains("0 abandoned"))
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 1") >= 200)
            #expect(try await connection.int("select count(*) from millrace.lease") == 0)
            #expect(
                try await connection.int(
                    "select (select count(*) from millrace.ready) + (select count(*) from millrace.history where outcome = 1)"
                ) == 5200)
            #expect(
                try await connection.int("select count(*) from millrace.ready where attempt > 0 or crashes > 0") == 0)
            await connection.close()
        }
    }

    @Test func `a second signal hands back what still runs, without using up an attempt`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let worker = try await MillraceProcess.worker("one", database: database.url, slots: 20)
            try await connection.run(
                "select millrace.enqueue_bulk('practice.sleep', array(select '{\"ms\": 600000}' from generate_series(1, 20)))"
            )
            try await eventually("20 run") { try await connection.int("select running from millrace.beat") == 20 }
            worker.signal(SIGTERM)
            try await eventually("it drains") { worker.output.contains("draining") }
            worker.signal(SIGTERM)
            #expect(try await worker.ended(within: .seconds(600)) == 0)
            #expect(
                try await connection.int("select count(*) from millrace.ready where attempt = 0 and crashes = 0") == 20)
            #expect(worker.output.contains("20 handed back"))
            await connection.close()
        }
    }

    @Test func `a handler that ignores its cancellation is left behind, and its job goes back`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let worker = try await MillraceProcess.worker(
                "one", database: database.url, slots: 2, ["--drain-timeout", "1s"])
            try await connection.run("select millrace.enqueue('practice.spin', '{\"ms\": 600000}')")
            try await eventually("it runs") { try await connection.int("select running from millrace.beat") == 1 }
            worker.signal(SIGTERM)
            #expect(try await worker.ended(within: .seconds(600)) == 1)
            #expect(worker.output.contains("1 abandoned"))
            #expect(
                try await connection.int("select count(*) from millrace.ready where attempt = 0 and crashes = 0") == 1)
            await connection.close()
        }
    }

    @Test func `a running job is cancelled long before it would have ended`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let worker = try await MillraceProcess.worker("one", database: database.url)
            let id = try await connection.int("select millrace.enqueue('practice.sleep', '{\"ms\": 600000}')")
            try await eventually("it runs") {
                try await connection.value("select state from millrace.job(\(id))") == "running"
            }
            #expect(try await connection.bool("select millrace.cancel(\(id))"))
            try await eventually("it is cancelled") {
                try await connection.value("select state from millrace.job(\(id))") == "cancelled"
            }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }

    /// 1. A cancel is requested in a transaction that stays open. 2. A younger cancel is committed, and handled. 3. The first commits.
    @Test func `a cancel that commits behind a younger one still reaches its job`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let slow = try await database.connect()
            let worker = try await MillraceProcess.worker("one", database: database.url)
            let first = try await connection.int("select millrace.enqueue('practice.sleep', '{\"ms\": 600000}')")
            let second = try await connection.int("select millrace.enqueue('practice.sleep', '{\"ms\": 600000}')")
            try await eventually("both run") { try await connection.int("select running from millrace.beat") == 2 }
            try await slow.run("begin")
            #expect(try await slow.bool("select millrace.cancel(\(first))"))
            #expect(try await connection.bool("select millrace.cancel(\(second))"))
            try await eventually("the younger one is heeded") {
                try await connection.value("select state from millrace.job(\(second))") == "cancelled"
            }
            try await slow.run("commit")
            try await eventually("so is the older one") {
                try await connection.value("select state from millrace.job(\(first))") == "cancelled"
            }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await slow.close()
            await connection.close()
        }
    }

    @Test func `a job that has expired is cancelled and not run`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let id = try await connection.int(
                "select millrace.enqueue('practice.crash', options => '{\"expires_at\": \"2020-01-01 12:00+02\"}')")
            let worker = try await MillraceProcess.worker("one", database: database.url)
            try await eventually("it is cancelled") {
                try await connection.value("select state from millrace.job(\(id))") == "cancelled"
            }
            #expect(
                try await connection.column("select error from millrace.history where id = \(id)")
                    == ["expired before it could run"])
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }

    @Test func `a run that takes too long is cancelled and tried again`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let worker = try await MillraceProcess.worker("one", database: database.url)
            let id = try await connection.int(
                "select millrace.enqueue('practice.sleep', '{\"ms\": 600000}', max_attempts => 2, options => '{\"timeout\": 0.3, \"backoff\": {\"base\": 0.1}}')"
            )
            try await eventually("it is dead") {
                try await connection.value("select state from millrace.job(\(id))") == "dead"
            }
            #expect(
                try await connection.column("select error like '%timed out%' from millrace.history where id = \(id)")
                    == ["true", "true"])
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }
}
