import Foundation
import Glibc
import Postgres
import TestSupport
import Testing

/// Workers behind a real pgbouncer, and a waker beside them. The workers poll so rarely that only a wake-up lets a job start.
@Suite(.serialized, .enabled(if: TestPooler.program != nil, "pgbouncer is not installed: apt-get install pgbouncer"))
struct WakerProcessTests {
    private static func waker(_ path: String, _ url: String) async throws -> MillraceProcess {
        let waker = try MillraceProcess(["waker", "--waker", path], database: url)
        try await eventually("the waker hears; it says: \(waker.output)") { waker.output.contains("the waker hears") }
        return waker
    }

    @Test func `a worker behind a pooler hears by the waker what is enqueued`() async throws {
        try await withDatabase { database in
            let owner = try await database.connect()
            let path = FileManager.default.temporaryDirectory.appending(path: "w-\(UUID().uuidString.prefix(8))").path
            defer { try? FileManager.default.removeItem(atPath: path) }
            try await withPooler(to: database, servers: 4) { pooled in
                let first = try await Self.waker(path, database.url)
                let worker = try await MillraceProcess.worker(
                    "pooled", database: pooled.location, ["--poll", "300s"],
                    environment: ["MILLRACE_CONNECTIONS": "2", "MILLRACE_WAKER": path])
                #expect(worker.output.contains("by a waker"), "\(worker.output)")
                func ends(_ count: Int, _ what: String) async throws {
                    try await eventually("\(what); the worker says: \(worker.output)", within: .seconds(120)) {
                        try await owner.int("select count(*) from millrace.history where outcome = 1") == count
                    }
                }
                for number in 1...5 {
                    try await owner.run("select millrace.enqueue('practice.nothing')")
                    try await ends(number, "job \(number) was heard of")
                }
                // A transaction that commits late has shared the lock, or has been told to notify.
                try await owner.run("begin; select millrace.enqueue('practice.nothing')")
                try await owner.run("commit")
                try await ends(6, "a late commit was heard of")
                first.signal(SIGKILL)
                _ = try await first.ended()
                try await owner.run("select millrace.enqueue('practice.nothing')")
                let second = try await Self.waker(path, database.url)
                try await ends(7, "what came while the waker was away was found when the next one had come")
                try await owner.run("select millrace.enqueue('practice.nothing')")
                try await ends(8, "and it is heard of by the next one")
                worker.signal(SIGTERM)
                #expect(try await worker.ended() == 0, "\(worker.output)")
                second.signal(SIGTERM)
                #expect(try await second.ended() == 0, "\(second.output)")
            }
            await owner.close()
        }
    }

    @Test func `a waker refuses a pooler, and says what it lacks`() async throws {
        try await withDatabase { database in
            try await withPooler(to: database) { pooled in
                let waker = try MillraceProcess(["waker", "--waker", "/tmp/none"], database: pooled.location)
                #expect(try await waker.ended() == 2)
                #expect(waker.output.contains("MILLRACE_DIRECT_URL"), "\(waker.output)")
            }
            let waker = try MillraceProcess(["waker"], database: database.url)
            #expect(try await waker.ended() == 2)
            #expect(waker.output.contains("MILLRACE_WAKER"), "\(waker.output)")
        }
    }
}
