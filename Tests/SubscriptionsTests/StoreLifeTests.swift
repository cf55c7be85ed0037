import FoundationEssentials
import JSON
import Postgres
import TestSupport
import Testing

/// Random lives at the stores, told in the order in which they happened or in another; the end must be the model's. `SUBSCRIPTION_LIVES` says
/// how many.
@Suite struct StoreLifeTests {
    /// Midnight of 2027-01-01, in seconds.
    static let firstDay = 1_798_761_600
    /// How long lives are, in days. Each seed is a life of one of them.
    private static let lengths = [100, 250, 500]
    private static let lives = Int(ProcessInfo.processInfo.environment["SUBSCRIPTION_LIVES"] ?? "") ?? 100

    private struct Told {
        var seed: Int
        var truth: String
        var events: [JSONValue]
    }

    /// The database is asked half an hour before the end.
    private static func check(_ door: String, _ life: (_ seed: Int, _ end: Int) -> Told) async throws {
        try await withConnection(.movableClock) { (connection: Connection) async throws -> Void in
            try await connection.makeEvents()
            try await connection.run(
                """
                select millrace.subscription_plan_set('free', '{"pages": 10}', is_default => true),
                    millrace.subscription_plan_set('light', '{"pages": 50}', 5, '{apple:light.month,stripe:price_light}'),
                    millrace.subscription_plan_set('plus', '{"pages": 100}', 10, '{apple:plus.month,apple:plus.year,stripe:price_plus}'),
                    millrace.subscription_plan_set('pro', '{"pages": 1000}', 20, '{apple:pro.month,apple:pro.year,stripe:price_pro}')
                """)
            var differences: [String] = []
            for (index, days) in lengths.enumerated() {
                let now = firstDay + days * 86_400 - 1800
                try await connection.run(
                    "update millrace.test_clock set shift = to_timestamp(\(now)) - clock_timestamp()")
                for seed in stride(from: index, to: lives, by: lengths.count) {
                    let one = life(seed, days * 24)
                    var random = SeededRandom(seed)
                    // Of each length every other one is told in the order of its events.
                    let events = seed % 2 == 0 ? one.events : one.events.shuffled(using: &random)
                    let found = try await tell(door, events, "\(seed)", on: connection)
                    guard found != one.truth else { continue }
                    differences.append("seed \(seed): \(found), and not \(one.truth)")
                }
            }
            #expect(differences.isEmpty, "\(differences.count) differences: \(differences.prefix(10))")
        }
    }

    /// Tells all, and says the state and the account's plan.
    private static func tell(
        _ door: String, _ events: [JSONValue], _ name: String, on connection: Connection
    ) async throws -> String {
        let list = JSONValue.array(events).compact.replacing("'", with: "''")
        _ = try await connection.value(
            """
            test.tell('\(door)', array(select jsonb_array_elements('\(list)'::jsonb)), 'r-\(name)', 'p-\(name)')
            """)
        return try await connection.value(
            """
            select s.state || ' ' || coalesce(a.plan, 'none') from millrace.subscription s
              left join millrace.subscription_account a on a.account = s.account where s.ref = 'r-\(name)'
            """) ?? "nothing"
    }

    @Test func `random lives in the App Store end as the model says, in any order of arrival`() async throws {
        try await Self.check("subscription_apple") { seed, end in
            let life = AppleLife(seed: seed, end: end)
            return Told(seed: seed, truth: life.truth(at: end - 1), events: life.notifications)
        }
    }

    @Test func `random lives at Stripe end as the model says, in any order of arrival`() async throws {
        try await Self.check("subscription_stripe") { seed, end in
            let life = StripeLife(seed: seed, end: end)
            return Told(seed: seed, truth: life.truth(at: end - 1, grace: 72), events: life.events)
        }
    }
}
