import FoundationEssentials
import Postgres
import TestSupport
import Testing

@testable import CheckIns

@Suite struct CheckInRuleTests {
    @Test func `a caller's time is believed between the last check-in and two minutes from now, for a day`() {
        let now = Date(timeIntervalSince1970: 1_000_000)
        func rule(_ at: Double?, last: Double? = nil) -> LateRule {
            LateRule(
                at: at.map { now.addingTimeInterval($0) }, lastCheckedIn: last.map { now.addingTimeInterval($0) },
                now: now)
        }
        #expect(rule(nil).effective == now && rule(nil).isBelieved)
        #expect(rule(-60).effective == now.addingTimeInterval(-60))
        #expect(rule(60).effective == now && rule(60).isBelieved)
        #expect(!rule(121).isBelieved && rule(121).effective == now)
        #expect(rule(-86_400).isBelieved && !rule(-86_401).isBelieved)
        #expect(!rule(-60, last: -59).isBelieved && rule(-60, last: -60).isBelieved)
    }

    @Test func `a chain goes through its steps three times, then to everybody`() {
        var chain = EscalationMachine(steps: [5, 2, 2])
        #expect(
            (0..<8).map { _ in chain.next() } == [
                .step(2, round: 1), .step(5, round: 1), .step(2, round: 2), .step(5, round: 2), .step(2, round: 3),
                .step(5, round: 3), .everybody, .everybody,
            ])
        var drill = EscalationMachine(steps: [1, 2], isDrill: true)
        #expect((0..<3).map { _ in drill.next() } == [.step(1, round: 1), .step(2, round: 1), .over])
        var nobody = EscalationMachine(steps: [])
        #expect(nobody.next() == .everybody)
    }

    /// The machine knows nothing of SQL: what both make of a long day must be the same.
    @Test(arguments: [1, 2, 3]) func `the database does to a watch what the machine does`(_ seed: UInt64) async throws {
        try await withConnection(.movableClock) { connection in
            var random = SeededRandom(seed)
            func now() async throws -> Date {
                Date(
                    timeIntervalSince1970: Double(
                        try await connection.int("select floor(extract(epoch from millrace.now()) * 1000)::bigint"))
                        / 1000)
            }
            try await connection.befriend()
            var machine = WatchMachine(every: 600, grace: 90, warnings: [100, 250], now: try await now())
            try await connection.arm(
                "anna", "every => '10 min', \"grace\" => '90 s', warnings => '{100 s, 250 s}',")
            var seen: Set<String> = []
            for _ in 0..<60 {
                // Every step is whole minutes plus half a minute, so that a slow machine does not cross a boundary.
                try await connection.advance(by: "\(Int.random(in: 1...4, using: &random) * 120 + 30) s")
                let at = try await now()
                switch Int.random(in: 0..<6, using: &random) {
                case 0, 1:
                    let isLate = machine.checkIn(at: nil, now: at)
                    try await connection.checkIn()
                    seen.insert("check-in, late \(isLate)")
                case 2:
                    let back = Int.random(in: -1...8, using: &random) * 100 + 45
                    _ = machine.checkIn(at: at.addingTimeInterval(-Double(back)), now: at)
                    try await connection.checkIn(at: "millrace.now() - interval '\(back) s'")
                case 3:
                    let every = Int.random(in: 3...12, using: &random) * 100
                    machine.change(every: Double(every), now: at)
                    try await connection.run("select millrace.check_in_set_interval('anna', '\(every) s', 'anna')")
                default:
                    if let due = machine.look(now: at) { seen.insert(due.rawValue) }
                    try await connection.watch()
                }
                #expect(try await connection.watchState() == machine.state.rawValue)
                let expires = try await connection.int(
                    "select extract(epoch from check_in_expiration)::bigint from millrace.check_ins")
                #expect(abs(Double(expires) - machine.expires.timeIntervalSince1970) < 14)
            }
            #expect(seen.contains("expired") && seen.count > 2)
        }
    }

    @Test(arguments: [[1], [1, 2, 3]]) func `the database goes through a chain as the machine does`(
        _ steps: [Int]
    ) async throws {
        try await withConnection(.movableClock) { connection in
            for step in steps { try await connection.befriend("anna", "c\(step)", step: step, wait: "\(step) min") }
            try await connection.arm()
            try await connection.advance(by: "61 min")
            var chain = EscalationMachine(steps: steps)
            var seen = 0
            for _ in 0..<(steps.count * 3 + 2) {
                try await connection.watch()
                let told = try await connection.column(
                    "select step || '/' || round from millrace.alarm_history where what = 'told' and id > \(seen) order by id"
                )
                seen = try await connection.int("select max(id) from millrace.alarm_history")
                switch chain.next() {
                case .step(let step, let round): #expect(told == ["\(step)/\(round)"])
                case .everybody:
                    #expect(told.count == steps.count)
                    #expect(try await connection.alarmState() == ["unreachable"])
                case .over: Issue.record("no drill")
                }
                try await connection.advance(by: try await connection.alarmState() == ["open"] ? "4 min" : "61 min")
            }
        }
    }
}
