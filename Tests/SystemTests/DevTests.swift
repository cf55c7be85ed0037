import Glibc
import Postgres
import TestSupport
import Testing

@Suite struct DevTests {
    /// `killed` is what `dev` says of a worker that it saw end; a worker that finds another silent says `lost`.
    @Test func `dev itself puts back the jobs of a worker that it saw die, and the next worker starts them`()
        async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            let dev = try MillraceProcess(["dev", "--database-url", database.url], database: database.url)
            let id = try await connection.int("select millrace.enqueue('practice.sleep', '{\"ms\": 600000}')")
            let state = "select state from millrace.jobs where id = \(id)"
            try await eventually("the job runs; dev says: \(dev.output)") {
                try await connection.value(state) == "running" || !dev.isRunning
            }
            let worker = try await connection.int("select pid from millrace.session where pid <> \(dev.pid)")
            kill(pid_t(worker), SIGKILL)
            try await eventually("the job was put back") {
                try await connection.int("select count(*) from millrace.history where id = \(id)") == 1
            }
            let error = try await connection.value("select error from millrace.history where id = \(id)") ?? ""
            #expect(error.contains(" was killed while the job ran"), "\(error)")
            try await eventually("the next worker has started it") { try await connection.value(state) == "running" }
            #expect(try await connection.int("select pid from millrace.session where pid <> \(dev.pid)") != worker)
            try await connection.run("select millrace.cancel(\(id))")
            dev.signal(SIGTERM)
            #expect(try await dev.ended() == 0, "\(dev.output)")
            await connection.close()
        }
    }
}
