import Foundation
import Postgres
import TestSupport
import Testing

/// Six events of one subscription, told in every seventh of the 720 orders, each for a subscription of its own; in all of them where
/// `MILLRACE_LONG` is set.
@Suite struct OrderTests {
    private static let step = ProcessInfo.processInfo.environment["MILLRACE_LONG"] == nil ? 7 : 1

    private static func check(_ door: String, _ events: String, ends: String) async throws {
        try await withConnection(.movableClock) { (connection: Connection) async throws -> Void in
            try await connection.makePlans()
            try await connection.makeEvents()
            // In parts, so that a busy machine answers each in time.
            var told: [String] = []
            for part in 0..<12 {
                told += try await connection.column(
                    """
                    select test.tell('\(door)', p.list, 'r-' || p.n, 'p-' || p.n)
                      from test.permutations(array[\(events)]) p where p.n % \(step) = 0 and p.n % 12 = \(part)
                    """)
            }
            #expect(told.count == 720 / step && Set(told).count == 1)
            let outcomes = try await connection.outcomes()
            #expect(outcomes.count == 1)
            #expect(outcomes.first?.hasPrefix("\(720 / step) ") == true)
            #expect(outcomes.first?.contains(ends) == true, "\(outcomes)")
        }
    }

    @Test func `six events of Stripe end in the same state in any order`() async throws {
        try await Self.check(
            "subscription_stripe",
            """
            test.stripe(1, 'created', 'incomplete', 0, 30), test.stripe(2, 'updated', 'trialing', 0, 7), test.stripe(3, 'updated', 'active', 100, 30),
            test.stripe(4, 'updated', 'past_due', 200, 60), test.stripe(5, 'updated', 'past_due', 250, 60),
            test.stripe(6, 'updated', 'active', 300, 60, '{"cancel_at_period_end": true}')
            """, ends: #""state": "cancelled""#)
    }

    @Test func `six notifications of Apple end in the same state in any order`() async throws {
        try await Self.check(
            "subscription_apple",
            """
            test.apple(1, 'SUBSCRIBED', 'INITIAL_BUY', 1, 0, 't1', 7, 1, '{"offerDiscountType": "FREE_TRIAL"}'),
            test.apple(2, 'DID_RENEW', null, 1, 100, 't2', 37, 1),
            test.apple(3, 'REFUND', null, 1, 200, 't1', 7, 1, '{"revocationDate": 1790000000000}'),
            test.apple(4, 'DID_FAIL_TO_RENEW', 'GRACE_PERIOD', 4, 300, 't2', 37, 1, '{}', jsonb_build_object('gracePeriodExpiresDate', test.s(50) * 1000)),
            test.apple(5, 'DID_RENEW', 'BILLING_RECOVERY', 1, 400, 't3', 67, 1),
            test.apple(6, 'DID_CHANGE_RENEWAL_STATUS', 'AUTO_RENEW_DISABLED', 1, 500, 't3', 67, 0)
            """, ends: #""state": "cancelled""#)
    }

    @Test func `an upgrade and the refund of what it became end in the same state in any order`() async throws {
        let small = #"{"productId": "com.example.small"}"#
        try await Self.check(
            "subscription_apple",
            """
            test.apple(1, 'SUBSCRIBED', 'INITIAL_BUY', 1, 0, 't1', 365, 1, '\(small)'),
            test.apple(2, 'DID_CHANGE_RENEWAL_STATUS', 'AUTO_RENEW_DISABLED', 1, 100, 't1', 365, 0, '\(small)'),
            test.apple(3, 'DID_CHANGE_RENEWAL_PREF', 'UPGRADE', 1, 200, 't2', 30, 1),
            test.apple(4, 'DID_RENEW', null, 1, 300, 't3', 60, 1),
            test.apple(5, 'DID_CHANGE_RENEWAL_PREF', 'DOWNGRADE', 1, 400, 't3', 60, 1),
            test.apple(6, 'REFUND', null, 5, 500, 't3', 60, 0, '{"revocationDate": 1790000000000}')
            """, ends: #""state": "revoked""#)
    }

    @Test func `an end within the second of a change wins over it, and a repeated event counts once`() async throws {
        try await withConnection(.movableClock) { (connection: Connection) async throws -> Void in
            try await connection.makePlans()
            try await connection.makeEvents()
            let (change, end) = (
                "test.stripe(1, 'updated', 'active', 5, 30)", "test.stripe(2, 'deleted', 'canceled', 5, 30)"
            )
            #expect(
                try await connection.value(
                    "test.tell('subscription_stripe', array[\(end), \(change), \(end), \(change)], 's', 'ada')")
                    == "new new known known")
            #expect(try await connection.state() == "expired pro ada")
            #expect(try await connection.int("select count(*) from millrace.subscription_event") == 2)
        }
    }
}
