import Composition
import FoundationEssentials
import MillraceQueues
import Postgres
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
            for (session, name, ahead) in [(1, "right", "20 s"), (2, "fast", "2 h 59 s"), (3, "old", nil as String?)] {
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

    @Test func `more jobs than are counted are never said exactly, by no part of status`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.enqueue('a'), millrace.enqueue('a');
                select millrace.enqueue('b', queue => 'full') from generate_series(1, 12)
                """)
            var report = try await StatusReport.read(on: connection, cap: 10, patience: .seconds(30))
            // The console counts further than that, so its number is the answer.
            #expect(report.findings.map(\.sentence) == ["about 14 jobs wait and no worker is running"])
            #expect(report.queues.value?.map { $0.amount(cap: 10).text } == ["2", "about 12"])
            report.queues = .known(
                (report.queues.value ?? []).map {
                    var one = $0; one.estimated = nil; return one
                })
            #expect(report.findings.map(\.sentence) == ["more than 12 jobs wait and no worker is running"])
            #expect(report.findings.map(\.command) == ["systemctl start millrace"])
        }
    }

    @Test func `jobs that end workers and handlers that ignore their end are findings with a command`() async throws {
        try await withConnection { connection in
            try await connection.openWorker(1, "w")
            try await connection.run(
                "select millrace.beat(1, 'working', 2, 0, 1), millrace.enqueue('poison'); update millrace.ready set crashes = 1"
            )
            let report = try await StatusReport.read(on: connection, cap: 10, patience: .seconds(30))
            let found = report.findings.filter { [.endsWorkers, .stuckHandlers].contains($0.alarm) }
            let id = try #require(report.runTroubles.value?.first?.job)
            #expect(
                found.map(\.sentence) == [
                    "job \(id) (poison in default): a worker ended while it held it; correct its handler, or take it out: millrace jobs cancel \(id)",
                    "w: 1 stuck handler; restart it on host",
                ])
            #expect(found.map(\.command) == ["millrace jobs show \(id)", "kill 1"])
        }
    }

    @Test func `doctor sets the running workers against the waiting jobs`() async throws {
        try await withConnection { connection in
            func judge() async throws -> Check.Result {
                Doctor.judge(
                    try await Queue.workers(on: connection), waiting: try await Queue.depths(cap: 10, on: connection),
                    unknown: try await Queue.orphans(on: connection).map(\.kind))
            }
            #expect(try await judge() == .ok("none is running, and no job waits"))
            try await connection.run("select millrace.enqueue('a', queue => 'mail')")
            guard case .problem("none is running, and 1 job waits", _) = try await judge() else {
                Issue.record("a job waits and no worker is running")
                return
            }
            try await connection.openWorker(1, "w")
            guard case .warning("none of 1 knows a, of which jobs wait", _) = try await judge() else {
                Issue.record("no worker knows the kind")
                return
            }
            try await connection.run(
                "select millrace.session_close(1), millrace.session_open(2, 'v', 'host', 1, '0', '{default}', array(select id from millrace.kind), 4, false)"
            )
            guard case .warning("none of 1 takes from the queue mail, in which jobs wait", _) = try await judge() else {
                Issue.record("no worker takes from the queue")
                return
            }
            try await connection.run(
                "select millrace.session_close(2), millrace.session_open(3, 'u', 'host', 1, '0', null, array(select id from millrace.kind), 4, false)"
            )
            #expect(try await judge() == .ok("1 worker for 1 waiting"))
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
