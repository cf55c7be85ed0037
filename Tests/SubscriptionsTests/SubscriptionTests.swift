import Postgres
import TestSupport
import Testing

@Suite struct SubscriptionTests {
    private static func with(_ body: (Connection) async throws -> Void) async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.run(
                "update millrace.test_clock set shift = timestamptz '2027-05-10 20:00Z' - clock_timestamp()")
            try await connection.makePlans()
            try await connection.makeEvents()
            try await body(connection)
        }
    }

    private static func advance(_ interval: String, _ connection: Connection) async throws {
        try await connection.run("select millrace.test_clock_advance('\(interval)')")
        try await connection.runDue()
    }

    @Test func `one that is paid has the plan's quotas, and the event is published in the same transaction`()
        async throws
    {
        try await Self.with { (connection: Connection) async throws -> Void in
            let tell = "test.tell('subscription_stripe', array[test.stripe(1, 'created', 'active', 0, 30)], 's', 'ada')"
            try await connection.run("begin")
            #expect(try await connection.value(tell) == "new")
            #expect(try await connection.int("select count(*) from millrace.event") == 1)
            try await connection.run("rollback")
            #expect(try await connection.int("select count(*) from millrace.event") == 0)
            #expect(try await connection.pages("person:ada") == nil)
            #expect(try await connection.value(tell) == "new")
            #expect(try await connection.state() == "active pro ada")
            #expect(try await connection.pages("person:ada") == "1000")
            #expect(
                try await connection.value(
                    "select type || ' ' || (data ->> 'plan') || ' ' || (data ->> 'state') || ' ' || tenant from millrace.event"
                )
                    == "com.classnotes.subscription.changed pro active person:ada")
            #expect(
                try await connection.value("select topic || ' ' || change from millrace.feed_mine(actor => 'ada')")
                    == "subscriptions active")
            #expect(
                try await connection.value("millrace.subscription_mine('ada') #>> '{subscriptions,0,state}'")
                    == "active")
        }
    }

    @Test func `grace and end come by the clock, and the store's late word brings it back`() async throws {
        try await Self.with { (connection: Connection) async throws -> Void in
            _ = try await connection.value(
                "test.tell('subscription_stripe', array[test.stripe(1, 'created', 'active', 0, 2)], 's', 'ada')")
            try await Self.advance("2 days", connection)
            #expect(try await connection.state() == "grace pro ada")
            #expect(try await connection.pages("person:ada") == "1000")
            #expect(
                try await connection.column("select kind from millrace.notice where status = 'pending'")
                    == ["subscription.unpaid"])
            try await Self.advance("3 days", connection)
            #expect(try await connection.state() == "expired pro ada")
            #expect(try await connection.pages("person:ada") == "10")
            _ = try await connection.value(
                "test.tell('subscription_stripe', array[test.stripe(2, 'updated', 'active', 60, 32)], 's', 'ada')")
            #expect(try await connection.state() == "active pro ada")
            #expect(try await connection.pages("person:ada") == "1000")
            #expect(
                try await connection.column(
                    "select (data #>> '{before,state}') || '>' || (data ->> 'state') from millrace.event where data #> '{before,state}' is not null order by at"
                )
                    == ["active>grace", "grace>expired", "expired>active"])
        }
    }

    @Test func `one that ends at the period's end is told of before, unless it goes on`() async throws {
        try await Self.with { (connection: Connection) async throws -> Void in
            try await connection.run(
                "select millrace.person_profile('ada', 'Ada', 'de', 'Europe/Berlin', actor => 'ada')")
            _ = try await connection.value(
                #"test.tell('subscription_stripe', array[test.stripe(1, 'created', 'active', 0, 20, '{"cancel_at_period_end": true}')], 's', 'ada')"#
            )
            #expect(try await connection.state() == "cancelled pro ada")
            let pending =
                "select kind || ' ' || (data ->> 'until') || ' ' || (due_at at time zone 'UTC')::date from millrace.notice where status = 'pending'"
            #expect(try await connection.column(pending) == ["subscription.ending 2027-05-30 2027-05-27"])
            _ = try await connection.value(
                "test.tell('subscription_stripe', array[test.stripe(2, 'updated', 'active', 50, 20)], 's', 'ada')")
            #expect(try await connection.column(pending).isEmpty)
            _ = try await connection.value(
                #"test.tell('subscription_stripe', array[test.stripe(3, 'updated', 'active', 90, 20, '{"cancel_at_period_end": true}')], 's', 'ada')"#
            )
            #expect(try await connection.column(pending) == ["subscription.ending 2027-05-30 2027-05-27"])
            try await Self.advance("20 days", connection)
            #expect(try await connection.state() == "expired pro ada")
        }
    }

    @Test func `a refund of what is in force revokes, one of an earlier period does not`() async throws {
        try await Self.with { (connection: Connection) async throws -> Void in
            let bought =
                "test.apple(1, 'SUBSCRIBED', 'INITIAL_BUY', 1, 0, 't1', 30, 1), test.apple(2, 'DID_RENEW', null, 1, 100, 't2', 60, 1)"
            let (early, late) = (
                #"test.apple(3, 'REFUND', null, 1, 200, 't1', 30, 1, '{"revocationDate": 1790000000000}')"#,
                #"test.apple(4, 'REFUND', null, 5, 300, 't2', 60, 0, '{"revocationDate": 1790000000000}')"#
            )
            _ = try await connection.value("test.tell('subscription_apple', array[\(bought), \(early)], 's', 'ada')")
            #expect(try await connection.state() == "active pro ada")
            // The first transaction, which was refunded, is not in force again because the second is.
            _ = try await connection.value("test.tell('subscription_apple', array[\(late)], 's', 'ada')")
            #expect(try await connection.state() == "revoked pro ada")
            #expect(try await connection.pages("person:ada") == "10")
            _ = try await connection.value(
                "test.tell('subscription_apple', array[test.apple(5, 'REFUND_REVERSED', null, 1, 400, 't2', 60, 1)], 's', 'ada')"
            )
            #expect(try await connection.state() == "active pro ada")
        }
    }

    @Test func `an upgrade takes the place of what would last longer, and its refund does not bring that back`()
        async throws
    {
        try await Self.with { (connection: Connection) async throws -> Void in
            try await connection.run(
                "select millrace.subscription_plan_set('plus', '{\"pages\": 100}', 5, '{apple:com.example.plus}')")
            let yearly =
                #"test.apple(1, 'SUBSCRIBED', 'INITIAL_BUY', 1, 0, 't1', 365, 1, '{"productId": "com.example.plus"}')"#
            _ = try await connection.value("test.tell('subscription_apple', array[\(yearly)], 's', 'ada')")
            #expect(try await connection.state() == "active plus ada")
            let monthly = "test.apple(2, 'DID_CHANGE_RENEWAL_PREF', 'UPGRADE', 1, 100, 't2', 30, 1)"
            _ = try await connection.value("test.tell('subscription_apple', array[\(monthly)], 's', 'ada')")
            #expect(try await connection.state() == "active pro ada")
            #expect(try await connection.pages("person:ada") == "1000")
            let refund =
                #"test.apple(3, 'REFUND', null, 5, 200, 't2', 30, 0, '{"revocationDate": 1790000000000}')"#
            _ = try await connection.value("test.tell('subscription_apple', array[\(refund)], 's', 'ada')")
            #expect(try await connection.state() == "revoked pro ada")
            #expect(try await connection.pages("person:ada") == "10")
        }
    }

    @Test func `what is renewed early begins when it was bought for`() async throws {
        try await Self.with { (connection: Connection) async throws -> Void in
            try await connection.run(
                "select millrace.subscription_plan_set('plus', '{\"pages\": 100}', 5, '{apple:com.example.plus}')")
            // Told on the last day of the month before.
            let events = [
                "test.apple(1, 'SUBSCRIBED', 'INITIAL_BUY', 1, 0, 't1', 1, 1, jsonb_build_object('purchaseDate', test.s(-29) * 1000))",
                "test.apple(2, 'DID_RENEW', null, 1, 100, 't2', 31, 1, jsonb_build_object('productId', 'com.example.plus', 'purchaseDate', test.s(1) * 1000))",
            ]
            _ = try await connection.value(
                "test.tell('subscription_apple', array[\(events.joined(separator: ", "))], 's', 'ada')")
            #expect(try await connection.state() == "active pro ada")
            try await Self.advance("5 hours", connection)
            #expect(try await connection.state() == "active plus ada")
            #expect(try await connection.pages("person:ada") == "100")
        }
    }

    @Test func `of several items the plan of the highest rank counts, also when a plan gets the product later`()
        async throws
    {
        try await Self.with { (connection: Connection) async throws -> Void in
            let items = #"""
                {"items": {"data": [{"price": {"id": "price_support"}}, {"price": {"id": "price_1", "lookup_key": "price_pro"}},
                                    {"price": {"id": "price_2", "product": "prod_big"}}]}}
                """#
            _ = try await connection.value(
                "test.tell('subscription_stripe', array[test.stripe(1, 'created', 'active', 0, 30, '\(items)')], 's', 'ada')"
            )
            #expect(try await connection.state() == "active pro ada")
            try await connection.run(
                "select millrace.subscription_plan_set('big', '{\"pages\": 9000}', 30, '{stripe:prod_big}')")
            #expect(try await connection.value("millrace.subscriptions_run('{\"all\": true}') is not null") == "true")
            #expect(try await connection.state() == "active big ada")
            #expect(try await connection.pages("person:ada") == "9000")
        }
    }

    @Test func `the plan of the highest rank counts, and an admin's own quota goes before it`() async throws {
        try await Self.with { (connection: Connection) async throws -> Void in
            try await connection.run(
                """
                select millrace.subscription_set('pro', person => 'ada'), millrace.subscription_set('team', person => 'ada', ref => 'gift');
                """)
            #expect(try await connection.pages("person:ada") == "5000")
            try await connection.run("select millrace.quota_set('person:ada', 'pages', 7)")
            try await connection.run(
                "select millrace.subscription_set('team', person => 'ada', ref => 'gift', status => 'ended')")
            #expect(try await connection.pages("person:ada") == "7")
            try await connection.run("select millrace.quota_set('person:ada', 'pages', null)")
            #expect(try await connection.pages("person:ada") == "1000")
        }
    }

    @Test func `who has used most of a smaller plan's quota is warned at once, at 80 and at 100 percent`()
        async throws
    {
        try await Self.with { (connection: Connection) async throws -> Void in
            let warnings =
                "select (data ->> 'used') || ' of ' || (data ->> 'limit') from millrace.event where type = 'com.classnotes.quota.warning' order by at"
            try await connection.run(
                "select millrace.subscription_set('team', person => 'ada'), millrace.quota_use('person:ada', 'pages', 900)"
            )
            #expect(try await connection.column(warnings).isEmpty)
            try await connection.run("select millrace.subscription_set('pro', person => 'ada')")
            #expect(try await connection.column(warnings) == ["900 of 1000"])
            #expect(try await connection.value("millrace.quota_use('person:ada', 'pages', 100)") == "true")
            #expect(try await connection.column(warnings) == ["900 of 1000", "1000 of 1000"])
            #expect(try await connection.value("millrace.quota_use('person:ada', 'pages', 1)") == "false")
        }
    }

    @Test func `a plan's change reaches all accounts by a job`() async throws {
        try await Self.with { (connection: Connection) async throws -> Void in
            try await connection.run(
                """
                select millrace.subscription_set('pro', person => 'p-' || i) from generate_series(1, 230) i;
                select millrace.subscription_plan_set('pro', '{"pages": 7}')
                """)
            #expect(
                try await connection.column(
                    "select args from millrace.jobs where kind = 'subscriptions.due' and args ? 'all'")
                    == [#"{"all": true}"#])
            var next = try await connection.value("select args from millrace.jobs where args ? 'all'")
            var steps = 0
            while let args = next {
                next = try await connection.value("millrace.subscriptions_run('\(args)')")
                steps += 1
            }
            #expect(steps == 6)
            #expect(
                try await connection.int("select count(*) from millrace.quota where name = 'pages' and allowed = 7")
                    == 230)
        }
    }

    @Test func `whose it is can be said before the store speaks, and after, and stays so`() async throws {
        try await Self.with { (connection: Connection) async throws -> Void in
            try await connection.run("select millrace.subscription_link('stripe', 's', tenant => 'school')")
            #expect(try await connection.state() == "new")
            _ = try await connection.value(
                "test.tell('subscription_stripe', array[test.stripe(1, 'created', 'active', 0, 30)], 's', 'ada')")
            #expect(try await connection.pages("school") == "1000")
            #expect(try await connection.pages("person:ada") == nil)
            #expect(try await connection.value("millrace.subscription_link('stripe', 's', 'ada', 'club')") == "true")
            #expect(try await connection.value("millrace.subscription_link('stripe', 's', 'ada', 'club')") == "false")
            #expect(try await connection.pages("school") == "10")
            #expect(try await connection.pages("club") == "1000")
            #expect(try await connection.state() == "active pro ada")
        }
    }

    @Test func `a person is erased with subscriptions, and stores bring none of it back`() async throws {
        try await Self.with { (connection: Connection) async throws -> Void in
            _ = try await connection.value(
                "test.tell('subscription_stripe', array[test.stripe(1, 'created', 'active', 0, 30)], 's', 'ada')")
            try await connection.run(
                "select millrace.subscription_link('stripe', 'of-school', 'ada', 'school'), millrace.person_erase('ada', 'ada')"
            )
            for table in ["subscription_account", "quota", "notice", "feed"] {
                let column = table == "subscription_account" ? "account" : table == "quota" ? "tenant" : "person"
                #expect(
                    try await connection.int(
                        "select count(*) from millrace.\(table) where \(column) in ('ada', 'person:ada')") == 0,
                    "\(table)")
            }
            #expect(
                try await connection.column("select ref || coalesce(person, '-') from millrace.subscription") == [
                    "of-school-"
                ])
            #expect(
                try await connection.value(
                    "test.tell('subscription_stripe', array[test.stripe(2, 'updated', 'active', 9, 60)], 's', 'ada')")
                    == "erased")
            #expect(try await connection.int("select count(*) from millrace.subscription where ref = 's'") == 0)
        }
    }

    @Test func `what is no subscription's is passed over, and what is no event refused`() async throws {
        try await Self.with { (connection: Connection) async throws -> Void in
            for event in [#"{"id": "e", "type": "invoice.paid", "created": 1, "data": {"object": {}}}"#] {
                #expect(try await connection.value("millrace.subscription_stripe('\(event)')") == "ignored")
            }
            #expect(
                try await connection.value(#"millrace.subscription_apple('{"notificationType": "TEST", "data": {}}')"#)
                    == "ignored")
            for call in [
                "subscription_stripe('[]')", "subscription_stripe('{}')", "subscription_apple('{}')",
                "subscription_apple('7')",
                #"subscription_stripe('{"type": "customer.subscription.updated", "data": {"object": {"object": "subscription"}}}')"#,
            ] {
                #expect(try await connection.refusal(of: "select millrace.\(call)")?.sqlState == "22023", "\(call)")
            }
        }
    }

    @Test func `a plan's values are checked`() async throws {
        try await Self.with { (connection: Connection) async throws -> Void in
            for call in [
                "'no name', '{}'", "'p', '[]'", #"'p', '{"cows": 1}'"#, #"'p', '{"pages": -1}'"#,
                #"'p', '{"pages": "x"}'"#, "'p', rank => 2000000",
                "'p', period => 'hour'", "'p', grace => '91 days'", "'p', notice => '-1 day'",
                "'p', products => '{price_1}'", "'p', title => ''",
            ] {
                #expect(
                    try await connection.refusal(of: "select millrace.subscription_plan_set(\(call))")?.sqlState
                        == "22023", "\(call)")
            }
            try await connection.run("select millrace.subscription_set('pro', person => 'ada')")
            #expect(
                try await connection.refusal(of: "select millrace.subscription_plan_remove('pro')")?.sqlState == "55000"
            )
            #expect(try await connection.value("millrace.subscription_plan_remove('team')") == "true")
            #expect(try await connection.value("millrace.subscription_plan_remove('team')") == "false")
            #expect(
                try await connection.refusal(of: "select millrace.subscription_set('gold', person => 'ada')")?.sqlState
                    == "P0002")
        }
    }
}
