import Faults
import Postgres
import Supervision
import Synchronization
import Telemetry
import TestSupport
import Testing

/// How callers that are few get through again after an outage.
@Suite struct RecoveryTests {
    private func probing(leases: [Int64]) -> Circuit {
        var circuit = Circuit(Breaker.Settings())
        circuit.adopt(.open(until: .start), generation: 2, reason: nil, leases: [], at: .start)
        _ = circuit.admit(at: .start)
        circuit.adopt(.probing, generation: 3, reason: nil, leases: leases, at: .start)
        return circuit
    }

    @Test func `a lent probe waits for a caller that is late, and goes when another worker's callers ask`() {
        var circuit = probing(leases: [7])
        #expect(circuit.mirror.held(at: .start.after(1999)) == [7] && circuit.mirror.idle(at: .start.after(1999)) == [])
        let late = Moment.start.after(600_000)
        #expect(circuit.mirror.held(at: late).isEmpty && circuit.mirror.idle(at: late) == [7])
        guard case .go(let permit) = circuit.admit(at: late) else {
            Issue.record("the probe was not kept")
            return
        }
        #expect(permit.right == .fleetProbe(lease: 7) && circuit.mirror.held(at: late) == [7])
        var other = probing(leases: [7])
        other.adopt(.probing, generation: 3, reason: nil, leases: [], at: late)
        #expect(other.admit(at: late) == .refused(until: late + .seconds(1)) && other.mirror.wantsProbe)
    }

    @Test func `a probe is asked for when the open time is over, if a caller was told to come back then`() {
        var circuit = Circuit(Breaker.Settings())
        circuit.adopt(.open(until: .start.after(5000)), generation: 2, reason: nil, leases: [], at: .start)
        #expect(circuit.mirror.due == nil, "nobody waits")
        #expect(circuit.admit(at: .start.after(10)) == .refused(until: .start.after(5000)))
        #expect(circuit.mirror.due == .start.after(5000))
        circuit.askIfDue(at: .start.after(4999))
        #expect(!circuit.mirror.wantsProbe)
        circuit.askIfDue(at: .start.after(5000))
        #expect(circuit.mirror.wantsProbe && circuit.mirror.due == nil)
        circuit.adopt(.probing, generation: 3, reason: nil, leases: [9], at: .start.after(5100))
        guard case .go = circuit.admit(at: .start.after(5200)) else {
            Issue.record("its caller came back and was refused")
            return
        }
    }

    @Test func `while calls come back, one a second goes whatever its share, and the others are told of the next`() {
        var ramp = Ramp(began: .start, stepLength: .seconds(1))
        for step in 0..<Ramp.steps.count {
            let now = Moment.start.after(step * 1000 + 300)
            let goes = ramp.admits(at: now)
            ramp.leave()
            let goesToo = ramp.admits(at: now)
            #expect(goes && !goesToo, "in step \(step)")
            #expect(ramp.nextStep(after: now) == now.after(700))
        }
    }

    /// One worker whose fleet's answers the test takes by itself.
    private struct Member {
        let number: Int64
        let connection: Connection

        /// What the fleet lends to it.
        func flush(
            wants: Bool = false, held: [Int] = [], idle: [Int] = [], results: String = "[]", ok: Int = 1
        ) async throws -> [Int] {
            let arrays = [held, idle].map { "{\($0.map(String.init).joined(separator: ","))}" }
            let entry = """
                [{"provider": "mailer", "class": "default", "generation": 1, "ok": \(ok), "failed": 0, "throttled": 0, "slow": 0, "unknown": 0,
                  "latencies": [], "asked": 1, "authoritative": false, "wants": \(wants), "recovered": false, "results": \(results),
                  "held": "\(arrays[0])", "idle": "\(arrays[1])"}]
                """
            let settings =
                #"{"quorum": 2, "probes": 2, "window_s": 30, "open_s": 300, "longest_s": 3600, "ramp_s": 6}"#
            return try await connection.query(
                .pasted(
                    "select leases from millrace.provider_flush(\(number), 'w\(number)', '\(entry)', '\(settings)', millrace.now())"
                )
            ) { row throws(PostgresError) in try row.ints(0).map { Int($0) } }.first ?? []
        }
    }

    @Test func `the fleet keeps a late caller's probe with its worker, until others ask and there is none`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            let (one, two, three) = (
                Member(number: 1, connection: connection), Member(number: 2, connection: connection),
                Member(number: 3, connection: connection)
            )
            _ = try await one.flush()
            try await connection.run(
                "update millrace.provider_circuit set state = 'open', until = millrace.now() where provider = 'mailer'")
            let first = try await one.flush(wants: true)
            #expect(first.count == 1)
            let second = try await two.flush(wants: true)
            #expect(second.count == 1)
            #expect(try await three.flush(wants: true).isEmpty, "both are held")
            // Both are late; one of them for half an hour, and it is still there.
            for _ in 0..<30 {
                try await connection.run(
                    "select millrace.test_clock_advance('1 minute'); select millrace.provider_tidy()")
                #expect(try await one.flush(idle: first) == first)
                #expect(try await two.flush(held: second) == second)
            }
            let third = try await three.flush(wants: true)
            #expect(third.count == 1)
            #expect(try await one.flush(idle: first).isEmpty, "it went to the worker whose callers asked")
            #expect(try await two.flush(held: second) == second)
        }
    }

    @Test func `a worker that lost the database and its probe gets another, and then makes the next as well`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            let one = Member(number: 1, connection: connection)
            _ = try await one.flush()
            try await connection.run(
                "update millrace.provider_circuit set state = 'open', until = millrace.now() where provider = 'mailer'")
            let first = try await one.flush(wants: true)
            try await connection.run("select millrace.test_clock_advance('1 minute')")
            let second = try await one.flush(wants: true)
            #expect(second.count == 1 && second != first)
            // It may be the only worker that calls.
            let third = try await one.flush(results: "[{\"lease\": \(second[0]), \"passed\": true}]")
            #expect(third.count == 1 && third != second)
            _ = try await one.flush(results: "[{\"lease\": \(third[0]), \"passed\": true}]")
            #expect(
                try await connection.value("select state from millrace.providers where provider = 'mailer'")
                    == "ramping")
        }
    }

    @Test(arguments: [0, 30, 300])
    func `a lone caller is let through when it comes back as it was told, and however late`(late: Int) async throws {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            let outage = try await ProviderOutage(of: "mailer", in: database, on: connection)
            let calls = Mutex(0)
            func call() async throws -> Duration? {
                do {
                    try await outage.supervisor.call("mailer") { _ in calls.withLock { $0 += 1 } }
                    return nil
                } catch let refusal as CallRefusal {
                    return refusal.wait + .seconds(late)
                }
            }
            var all: [Duration] = []
            for _ in 0..<5 {
                let waits = try await outage.tries { try await call() }
                if all.isEmpty { #expect(waits.count <= 2, "\(waits)") }
                all += waits
            }
            // Five calls, and the first of them is told until when the provider is left alone.
            #expect(calls.withLock { $0 } == 5)
            #expect(all.count <= 12, "\(all)")
            await connection.close()
        }
    }
}
