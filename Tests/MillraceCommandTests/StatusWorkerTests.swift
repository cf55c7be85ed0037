import Composition
import FoundationEssentials
import Postgres
import Queues
import TestSupport
import Testing

@testable import MillraceCommand

extension Connection {
    fileprivate func openWorker(_ session: Int, _ name: String) async throws {
        try await run(
            "select millrace.session_open(\(session), '\(name)', 'host', 1, '0', null, '{}', 4, false)")
    }
}

/// What `status` and `doctor` say of workers whose machine, or whose database, has something wrong with it.
@Suite struct StatusWorkerTests {
    @Test func `a worker's clock is compared with the database's`() async throws {
        try await withConnection { connection in
            for (session, name, ahead) in [(1, "right", "20 s"), (2, "fast", "2 h"), (3, "old", nil as String?)] {
                try await connection.openWorker(session, name)
                let clock = ahead.map { ", clock => clock_timestamp() + interval '\($0)'" } ?? ""
                try await connection.run("select millrace.beat(\(session), 'working', 0, 0, 0\(clock))")
            }
            let report = try await StatusReport.read(on: connection, cap: 10, patience: .seconds(30))
            let found = report.findings.filter { $0.alarm == .workerClock }
            #expect(found.map(\.sentence) == ["fast: its clock is 2h ahead of the database's"])
            guard case .warning(let sentence, _) = Doctor.judge(try await Queue.workers(on: connection)) else {
                Issue.record("doctor says nothing of the clock")
                return
            }
            #expect(sentence.contains("fast on ") && sentence.hasSuffix("its clock is 2h ahead of the database's"))
        }
    }

    @Test func `a real worker's clock is that of its machine`() async throws {
        try await withConnection { connection in
            try await connection.openWorker(1, "w")
            let stands = try await Queue.beat(
                on: connection, session: 1, state: "working", running: 0, waiting: 0, stuck: 0, tallies: [:])
            #expect(stands)
            let ahead = try #require(try await Queue.workers(on: connection).first?.clockAhead)
            // The machine is the database's own; how long the call takes is the machine's pace.
            #expect(ahead > -60 && ahead < 1)
        }
    }

    @Test func `workers that fall silent because nothing can be written are not blamed alone`() async throws {
        try await withDatabase { database in
            let owner = try await database.connect()
            try await owner.openWorker(1, "w")
            try await owner.run("update millrace.beat set at = at - interval '1 minute'")
            let calm = try await StatusReport.read(on: owner, cap: 10, patience: .seconds(30))
            #expect(calm.findings.contains { $0.alarm == .silentWorker } && calm.writeRefusal == nil)
            #expect(!calm.findings.contains { $0.alarm == .notWritable })
            try await owner.run("set default_transaction_read_only = on")
            let report = try await StatusReport.read(on: owner, cap: 10, patience: .seconds(30))
            let found = report.findings.filter { $0.alarm == .notWritable }
            #expect(found.map(\.severity) == [.critical])
            #expect(found.first?.sentence.contains("read-only") == true, "\(found)")
            await owner.close()
        }
    }
}
