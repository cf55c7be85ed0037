import TestSupport
import Testing

/// `load recovery` through the real executable, in its short form: that every room gets through, and what it uses up, never how fast it was.
@Suite struct LoadRecoveryTests {
    struct Figures: Decodable {
        struct Outage: Decodable {
            let room: String
            let down_s, callers: Int
            let from_back_s: Double?
            let requests, tries, undone: Int
        }
        let open_seconds: Int
        let outages: [Outage]
    }

    @Test func `after an outage every room gets through again, for one caller and for many, and no refusal is a try`()
        async throws
    {
        try await withDatabase { database in
            let (report, figures) = try await LoadTimeTests.load(
                ["recovery", "--quick"], database: database, as: Figures.self)
            #expect(figures.open_seconds == 1)
            // Five rooms with one caller and with fifty, and a mail in doubt, at each of two outages; and one batch.
            #expect(figures.outages.count == 23)
            #expect(
                Set(figures.outages.map(\.room))
                    == ["mail", "notices", "pushes", "ai", "webhooks", "AI batches", "mail in doubt"])
            #expect(Set(figures.outages.map(\.callers)) == [1, 50] && Set(figures.outages.map(\.down_s)) == [1, 3])
            for one in figures.outages {
                #expect(one.from_back_s != nil && one.requests > 0 && one.tries > 0 && one.undone == 0, "\(one)")
            }
            #expect(report.bars.count == 25)
            let counted = report.bars.filter { $0.what.hasPrefix("tries used up") || $0.what.hasPrefix("not done") }
            #expect(counted.count == 2 && counted.allSatisfy(\.met), "\(counted)")
        }
    }
}
