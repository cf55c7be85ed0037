import Foundation
import Glibc
import Postgres
import TestSupport
import Testing

@Suite struct WaitProcessTests {
    @Test func `waiting for a job that does not run says why`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                "select millrace.enqueue('practice.echo', queue => 'slow'); select millrace.pause('slow')")
            let worker = try await MillraceProcess.worker("one", database: database.url)
            let wait = try MillraceProcess(
                ["enqueue", "practice.echo", "--queue", "slow", "--wait"], database: database.url)
            try await eventually("it says why: \(wait.output)") {
                wait.output.contains("its queue slow has been paused")
            }
            try await connection.run("select millrace.resume('slow')")
            #expect(try await wait.ended() == 0, "\(wait.output)")
            #expect(wait.output.components(separatedBy: "does not run").count == 2)
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await connection.close()
        }
    }
}
