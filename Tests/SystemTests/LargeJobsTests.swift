import Foundation
import FoundationNetworking
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// No set of jobs stops a worker or makes it large, whatever is in the tables.
@Suite struct LargeJobsTests {
    private func mostResident(_ pid: pid_t) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
        return (Int(line.filter(\.isNumber)) ?? 0) / 1024
    }

    @Test func `jobs with 60 MB of tags each end, and others start meanwhile`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            // Rows from before tags had a bound, together more than the worker may hold. A value that is stored packed is copied so.
            try await connection.run(
                """
                select millrace.enqueue('practice.sleep', '{"ms": 1}') from generate_series(1, 6);
                create table public.wide (tags text[]);
                insert into public.wide values (array[repeat('x', 60000000)]);
                update millrace.job set tags = (select tags from public.wide);
                """)
            let worker = try await MillraceProcess.worker("large", database: database.url)
            try await connection.run(
                "select millrace.enqueue('practice.nothing', tenant => 'other') from generate_series(1, 100)")
            try await eventually("the other tenant's jobs have ended") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 100
            }
            try await eventually("the large ones have ended") {
                try await connection.int("select count(*) from millrace.history where outcome = 3") == 6
            }
            let error = try await connection.column("select min(error) from millrace.history where outcome = 3")
            #expect(error.joined().contains("bytes or more, and a worker takes 16777216: it has not run"))
            #expect(try mostResident(worker.pid) < 300)
            #expect(!worker.output.contains("the database is unreachable"))
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            #expect(try await connection.int("select count(*) from millrace.history") == 106)
            await connection.close()
        }
    }

    @Test func `150 jobs of 1 MiB run once each in bounded memory, and others start meanwhile`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.enqueue('practice.nothing', '{"ms": 1}') from generate_series(1, 150);
                create table public.wide (args jsonb);
                insert into public.wide values (jsonb_build_object('ms', 1, 'pad', repeat('x', 1048000)));
                update millrace.job set args = (select args from public.wide);
                """)
            let worker = try await MillraceProcess.worker("large", database: database.url)
            try await connection.run(
                "select millrace.enqueue('practice.nothing', tenant => 'other') from generate_series(1, 100)")
            try await eventually("the other tenant's jobs have ended") {
                try await connection.int(
                    "select count(*) from millrace.history h join millrace.job j using (id) where h.outcome = 1 and j.tenant = 'other'"
                ) == 100
            }
            try await eventually("the large ones have ended") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 250
            }
            #expect(try mostResident(worker.pid) < 300)
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }

    /// Each is stored in 40 bytes and takes 131,072 on the wire: nothing that is stored tells.
    @Test func `numbers of many digits do not make a claim large`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.enqueue('practice.nothing', '{"n": 1}') from generate_series(1, 600);
                update millrace.job set args = '{"x": 1e131071}';
                """)
            let worker = try await MillraceProcess.worker("large", database: database.url, slots: 1000)
            try await eventually("all have ended") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 600
            }
            #expect(try mostResident(worker.pid) < 300)
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }

    private func readiness(_ port: Int) async -> String {
        guard let url = URL(string: "http://127.0.0.1:\(port)/readyz"),
            let (data, response) = try? await URLSession.shared.data(from: url)
        else { return "" }
        return "\((response as? HTTPURLResponse)?.statusCode ?? 0) \(String(decoding: data, as: UTF8.self))"
    }

    @Test
    func `a worker whose claims are too slow is not ready, keeps its session, and is ready again when they succeed`()
        async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            let port = try freePort()
            let worker = try await MillraceProcess.worker(
                "slow", database: database.url, ["--listen", "127.0.0.1:\(port)"],
                environment: ["MILLRACE_STATEMENT_TIMEOUT": "1s"])
            try await eventually("it is ready") { await readiness(port).hasPrefix("200") }
            let session = try await connection.int("select id from millrace.session")
            let beat = try await connection.int("select beat from millrace.beat")
            try await connection.run("begin; lock table millrace.ready in access exclusive mode")
            try await eventually("it says that it cannot claim") {
                let said = await readiness(port)
                return said.hasPrefix("503") && said.contains("no claim of jobs has succeeded for")
            }
            // Its heartbeats continue meanwhile.
            try await eventually("it beats") {
                try await connection.int("select coalesce(max(beat), 0) from millrace.beat where state = 'cut off'")
                    > beat + 1
            }
            try await connection.run("commit")
            try await eventually("it is ready again") { await readiness(port).hasPrefix("200") }
            try await connection.run("select millrace.enqueue('practice.nothing')")
            try await eventually("it works") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 1
            }
            #expect(try await connection.int("select id from millrace.session") == session)
            #expect(!worker.output.contains("the database is unreachable"))
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }
}
