import Listeners
import Postgres
import Signatures
import Subscriptions
import Telemetry
import TestSupport
import Testing

@testable import MillraceCommand

/// What becomes of stores' messages that are not taken: counted, written down now and then, told by `doctor`.
@Suite struct StoreMessageTests {
    @Test func `the database learns of refusals at most twice a minute for each store and reason, and of all of them`()
    {
        var tally = StoreMessageTally()
        let start = ContinuousClock.now
        var random = SeededRandom(73)
        let reasons = [
            StoreMessageTally.Refusal(store: "stripe", why: "a"), .init(store: "stripe", why: "b"),
            .init(store: "apple", why: "a"),
        ]
        var sent: [StoreMessageTally.Refusal: Int] = [:]
        var told: [StoreMessageTally.Refusal: Int] = [:]
        var toldAt: [StoreMessageTally.Refusal: [ContinuousClock.Instant]] = [:]
        var now = start
        for _ in 0..<5000 {
            now += .milliseconds(Int.random(in: 0...200, using: &random))
            let reason = reasons.randomElement(using: &random) ?? reasons[0]
            sent[reason, default: 0] += 1
            if let count = tally.refuse(reason, at: now) {
                told[reason, default: 0] += count
                toldAt[reason, default: []].append(now)
            }
        }
        for reason in reasons {
            let times = toldAt[reason] ?? []
            #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= StoreMessageTally.pause })
            #expect(times.count > 10 && times.count <= Int((now - start) / StoreMessageTally.pause) + 1)
            // What is left is told with the next one.
            let rest = tally.refuse(reason, at: now + .seconds(60)) ?? 0
            #expect((told[reason] ?? 0) + rest == (sent[reason] ?? 0) + 1)
        }
        let text = tally.gauges.map(\.text).joined()
        let stripe = sent.filter { $0.key.store == "stripe" }.values.reduce(0, +) + 2
        #expect(
            text.contains(#"millrace_subscription_messages_total{store="stripe",outcome="refused"} \#(stripe)"# + "\n"))
        #expect(text.contains(#"millrace_subscription_messages_total{store="apple",outcome="new"} 0"# + "\n"))
    }

    @Test func `doctor says what is wrong with stores and plans, the worst first`() {
        let both = ["stripe", "apple"]
        var state = SubscriptionAdmin.State()
        #expect(state.judged(hears: []) == .ok("no store"))
        let bundleAlone = state.judged(hears: both, lacksAppID: true)
        #expect(
            bundleAlone.word == "warning" && bundleAlone.advice?.contains("MILLRACE_APP_STORE_APP_ID") == true)
        state.bare = ["free"]
        #expect(state.judged(hears: both).sentence == "the plan free has no quotas, so it limits nothing")
        state.unowned = 1
        #expect(state.judged(hears: both).sentence.hasPrefix("nobody knows whose 1"))
        state.unplanned = 2
        #expect(state.judged(hears: both).sentence.hasPrefix("2 are of products"))
        (state.late, state.oldest) = (3, 1200)
        #expect(state.judged(hears: both).sentence == "3 should have changed by now, the oldest 20m ago")
        state.refused = [.init(store: "stripe", why: "no signature matches", messages: 4, ago: 86_401)]
        #expect(state.judged(hears: both).sentence.hasPrefix("3 should"))
        state.refused.append(.init(store: "apple", why: "it is for another app", messages: 1, ago: 600))
        let refused = state.judged(hears: both)
        #expect(refused.word == "warning" && refused.advice?.contains("MILLRACE_APP_STORE_BUNDLE") == true)
        #expect(refused.sentence == "a message of apple was not taken 10m ago: it is for another app")
        #expect(state.judged(hears: ["stripe"]).advice?.hasPrefix("set MILLRACE_APP_STORE_BUNDLE") == true)
        state.told = ["stripe"]
        #expect(state.judged(hears: []).sentence == "stripe sends messages, and they cannot be checked here")
        state.stores = ["apple"]
        #expect(state.judged(hears: []).sentence.hasPrefix("plans have products of apple"))
    }

    @Test func `a store without settings here gets a 404, and whatever is refused leaves a row for each reason`()
        async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            var routes = SubscriptionRoutes(pool: Pool(database.options, size: 2), log: .silent)
            routes.stripe = StripeSignature.Secret.list("whsec_0123456789abcdefghijklmnop")
            var options = Listener.Options(address: try #require(ListenAddress("127.0.0.1:0")), token: nil)
            options.grace = .seconds(1)
            let listener = try Listener(options, routes: routes.all, log: .silent)
            async let running: Void = listener.run()
            let base = "http://127.0.0.1:\(listener.address.port)/v1/webhooks"
            func post(_ path: String) async throws -> String {
                try await Program.run("sh", ["-c", "curl -s -m 60 -w ' %{http_code}' -d '{}' \(base)/\(path)"]).text
            }
            for _ in 0..<20 {
                #expect(try await post("app-store").hasSuffix(" 404"))
                #expect(try await post("stripe").hasSuffix(" 401"))
            }
            // However many there are within half a minute, one is written down for each reason.
            #expect(
                try await connection.column(
                    "select concat_ws(' ', store, why, messages > 0) from millrace.subscription_refusal order by 1")
                    == [
                        "apple the settings of this store are missing t",
                        "stripe the signature's header is missing or malformed t",
                    ])
            let text = routes.tally.gauges.map(\.text).joined()
            #expect(text.contains(#"{store="apple",outcome="refused"} 20"#))
            #expect(text.contains(#"{store="stripe",outcome="refused"} 20"#))
            #expect(try await connection.int("select count(*) from millrace.subscription") == 0)
            listener.stop()
            try await running
            await connection.close()
        }
    }

    @Test func `the state counts what was refused, what is overdue, and plans that bound nothing`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            func state() async throws -> SubscriptionAdmin.State {
                try await SubscriptionAdmin.state(on: connection, deadline: .ample)
            }
            #expect(try await state() == SubscriptionAdmin.State())
            try await connection.run(
                """
                select millrace.subscription_plan_set('free', '{}', is_default => true), millrace.subscription_plan_set('top', '{}', rank => 20);
                select millrace.subscription_refused('apple', 'no', 3), millrace.subscription_refused('apple', 'no', 2)
                """)
            #expect(try await state().bare == ["top", "free"])
            try await connection.run("select millrace.subscription_plan_set('pro', '{\"pages\": 5}', rank => 10)")
            #expect(try await state().bare == ["free"])
            let refused = try await state().refused
            #expect(refused.map(\.store) == ["apple"] && refused.map(\.messages) == [5] && refused[0].why == "no")
            try await connection.run(
                """
                update millrace.subscription_refusal set last_at = now() - interval '8 days';
                select millrace.subscription_set('pro', 'ada');
                update millrace.subscription set next_at = now() - interval '20 min';
                update millrace.subscription_event set store = 'stripe'
                """)
            let later = try await state()
            #expect(later.refused == [] && later.late == 1 && later.oldest >= 1200 && later.told == ["stripe"])
            #expect(
                try await connection.int(
                    "select value::int from millrace.measure_rooms(now()) where name = 'subscriptions_late_seconds'")
                    >= 1200)
            // Counted from the start again after a week, and gone after a month.
            try await connection.run("select millrace.subscription_refused('apple', 'no', 1)")
            #expect(try await state().refused.map(\.messages) == [1])
            try await connection.run(
                "update millrace.subscription_refusal set last_at = now() - interval '31 days'; select millrace.subscriptions_expire()"
            )
            #expect(try await connection.int("select count(*) from millrace.subscription_refusal") == 0)
            #expect(
                try await connection.refusal(of: "select millrace.subscription_refused('mars', 'no', 1)")?.sqlState
                    == "23514")
            await connection.close()
        }
    }
}
