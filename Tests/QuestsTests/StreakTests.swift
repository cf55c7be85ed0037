import Calendars
import Postgres
import TestSupport
import Testing

@testable import Quests

@Suite struct StreakTests {
    @Test func `a streak grows, is saved by a freeze, and ends without one`() {
        var streak = Streak()
        for _ in 0..<6 { streak.pass(.done) }
        #expect(streak == Streak(length: 6, best: 6, freezes: 0))
        streak.pass(.notLived)
        #expect(streak.length == 6)
        streak.pass(.done)
        #expect(streak == Streak(length: 7, best: 7, freezes: 1))
        streak.pass(.missed)
        #expect(streak == Streak(length: 7, best: 7, freezes: 0))
        streak.pass(.missed)
        #expect(streak == Streak(length: 0, best: 7, freezes: 0))
    }

    @Test func `no more than two freezes are kept`() {
        #expect(Streak.folding(Array(repeating: .done, count: 28)).freezes == 2)
    }

    @Test func `a gap longer than the freezes starts a new streak`() {
        let week = Array(100..<107)
        let (kept, full) = Streak.folding(days: week + [108, 109], lived: { _ in true })
        #expect(kept == Streak(length: 9, best: 9, freezes: 0) && full == [106])
        let (ended, _) = Streak.folding(days: week + [109], lived: { _ in true })
        #expect(ended == Streak(length: 1, best: 7, freezes: 0))
        let (neutral, _) = Streak.folding(days: week + [109], lived: { $0 != 107 && $0 != 108 })
        #expect(neutral == Streak(length: 8, best: 8, freezes: 1))
    }

    @Test func `SQL and Swift fold every history alike`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            var random = SystemRandomNumberGenerator()
            for _ in 0..<200 {
                let outcomes = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                    [.done, .done, .done, .done, .missed, .notLived].randomElement(using: &random)
                        ?? Streak.Outcome.done
                }
                let theirs = try await connection.query(
                    """
                    select coalesce(millrace.streak_fold(o order by n), '{0,0,0}')::bigint[]
                      from unnest($1::text[]) with ordinality u(o, n)
                    """, [.texts(outcomes.map(\.rawValue))]
                ) { row throws(PostgresError) in try row.ints(0) }
                let ours = Streak.folding(outcomes)
                #expect(theirs == [ours.numbers.map { Int64($0) }], "\(outcomes.map(\.rawValue))")
            }
            await connection.close()
        }
    }
}
