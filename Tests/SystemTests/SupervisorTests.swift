import TestSupport
import Testing

/// The supervisor's scenario through real processes: what must not happen, never how fast it was.
@Suite struct SupervisorTests {
    private struct None: Decodable {}

    @Test func `six processes agree on a provider, and go on without the database`() async throws {
        try await withDatabase { database in
            let (report, _) = try await LoadTimeTests.load(
                ["supervisor", "--part", "outage"], database: database, as: None.self)
            #expect(report.bars.count == 12)
            for what in ["others that opened", "the reason names it"] {
                #expect(report.bars.first { $0.what.contains(what) }?.met == true, "\(what)")
            }
        }
    }

    @Test func `four processes share a pace, and a call's cost is measured`() async throws {
        try await withDatabase { database in
            let (pace, _) = try await LoadTimeTests.load(
                ["supervisor", "--part", "pace", "--seconds", "6"], database: database, as: None.self)
            #expect(pace.bars.count == 2)
            let (cost, _) = try await LoadTimeTests.load(
                ["supervisor", "--part", "cost", "--calls", "10000"], database: database, as: None.self)
            #expect(cost.bars.count == 2)
        }
    }
}
