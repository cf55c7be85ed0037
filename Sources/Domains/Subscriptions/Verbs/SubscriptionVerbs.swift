import CommandKit
import FoundationEssentials
import Postgres

extension Command {
    static let subscriptionsList = Command(
        ["subscriptions", "list"],
        summary: "List subscriptions: whose, of which plan, in which state",
        flags: [
            .single(
                "state", "STATE",
                .choice(["new", "trial", "active", "grace", "cancelled", "expired", "revoked", "incomplete", "paused"]),
                environment: .none, help: "Only those in this state."),
            .single("plan", "PLAN", environment: .none, help: "Only those of this plan."),
            .single("account", "NAME", environment: .none, help: "Only those of this person or tenant."),
            .single("after", "ID", .uuid, environment: .none, help: "Only those after this one."),
            .single(
                "limit", "N", .integer(1...500), environment: .none, fallback: "50", help: "Show at most this many."),
        ],
        examples: [Example("millrace subscriptions list --state grace", "whose payment fails")]
    ) { invocation in
        let parsed = invocation.parsed
        var filter = SubscriptionAdmin.Filter()
        filter.state = parsed.string("state")
        filter.plan = parsed.string("plan")
        filter.account = parsed.string("account")
        filter.after = parsed.string("after")
        filter.page = parsed.integer("limit") ?? 50
        let wanted = filter
        let rows = try await invocation.withSchema { try await SubscriptionAdmin.list(wanted, on: $0) }
            .map { try JSONValue.read($0) }
        invocation.console.list("subscriptions", rows, table: subscriptionTable(rows))
        if rows.count == wanted.page, invocation.console.format == .human, let last = rows.last?["id"]?.text {
            invocation.console.note("more may follow: --after \(last)")
        }
        return .done
    }

    private static func subscriptionTable(_ rows: [JSONValue]) -> Table {
        var table = Table(
            [
                .init("id"), .init("account", shrinks: true), .init("plan", shrinks: true), .init("state"),
                .init("store"), .init("ends"),
            ], whenEmpty: "there is no subscription")
        for row in rows {
            table.add([
                .init(row["id"]?.text ?? ""), .init(row["tenant"]?.text ?? row["person"]?.text ?? ""),
                .init(row["plan"]?.text ?? row["product"]?.text ?? ""), .init(row["state"]?.text ?? ""),
                .init(row["store"]?.text ?? ""), .init(row["period_end"]?.text ?? ""),
            ])
        }
        return table
    }

    static let subscriptionsShow = Command(
        ["subscriptions", "show"],
        summary: "Show a subscription, and what its store said",
        arguments: [Argument("id", .one, .uuid, help: "the subscription's id")],
        examples: [
            Example("millrace subscriptions show 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e", "the newest event first")
        ]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        let found = try JSONValue.read(try await invocation.withSchema { try await SubscriptionAdmin.show(id, on: $0) })
        invocation.console.show(found) {
            invocation.console.print(subscriptionTable([found]))
            var events = Table(
                [.init("at"), .init("type", shrinks: true), .init("status"), .init("id", shrinks: true)],
                whenEmpty: "its store has said nothing yet")
            for event in found["events"]?.items ?? [] {
                events.add([
                    .init(event["at"]?.text ?? ""), .init(event["type"]?.text ?? ""),
                    .init(event["facts"]?["status"]?.text ?? ""), .init(event["id"]?.text ?? ""),
                ])
            }
            invocation.console.print(events)
        }
        return .done
    }

    static let subscriptionsSet = Command(
        ["subscriptions", "set"],
        summary: "Give somebody a plan that no store knows of",
        discussion: """
            A gift, an invoice, a test. Repeated, it changes the same subscription; --ref tells several of one account apart. Without --until it has no end.
            """,
        arguments: [Argument("plan", help: "the plan")],
        flags: [
            .single("person", "PERSON", environment: .none, help: "Whose it is."),
            .single("tenant", "TENANT", environment: .none, help: "Whose quotas it sets; the person's if not given."),
            .single("until", "TIME", .instant, environment: .none, help: "The end of its period."),
            .toggle("ends", environment: .none, help: "It ends then, instead of waiting for the next payment."),
            .single(
                "status", "STATUS", .choice(["active", "trial", "unpaid", "ended", "revoked"]), environment: .none,
                fallback: "active", help: "Its state."),
            .single("ref", "REF", environment: .none, help: "Its own name, if the account has several."),
        ],
        examples: [Example("millrace subscriptions set pro --person ada --until 2030-01-01T00:00:00Z --ends", "a gift")]
    ) { invocation in
        let parsed = invocation.parsed
        let (person, tenant) = (parsed.string("person"), parsed.string("tenant"))
        guard person != nil || tenant != nil else { throw Failure(.misused, "give --person or --tenant") }
        let found = try JSONValue.read(
            try await invocation.withSchema { connection in
                try await SubscriptionAdmin.set(
                    plan: parsed.string("plan") ?? "", person: person, tenant: tenant,
                    until: parsed.string("until"), renews: !parsed.isOn("ends"),
                    status: parsed.string("status") ?? "active", ref: parsed.string("ref"), on: connection)
            })
        invocation.console.show(found) { invocation.console.print(subscriptionTable([found])) }
        return .done
    }

    static let subscriptionsLink = Command(
        ["subscriptions", "link"],
        summary: "Say who owns a store's subscription",
        discussion:
            "Before or after the store reports it. What the store says later about the owner does not change that.",
        arguments: [
            Argument("store", .one, .choice(["stripe", "apple"]), help: "the store"),
            Argument("ref", help: "Stripe's sub_…, or Apple's original transaction id"),
        ],
        flags: [
            .single("person", "PERSON", environment: .none, help: "Whose it is."),
            .single("tenant", "TENANT", environment: .none, help: "Whose quotas it sets; the person's if not given."),
        ],
        examples: [Example("millrace subscriptions link stripe sub_1QX --person ada", "")]
    ) { invocation in
        let parsed = invocation.parsed
        let (store, ref) = (parsed.string("store") ?? "", parsed.string("ref") ?? "")
        let (person, tenant) = (parsed.string("person"), parsed.string("tenant"))
        guard person != nil || tenant != nil else { throw Failure(.misused, "give --person or --tenant") }
        let changed = try await invocation.withSchema { connection in
            try await SubscriptionAdmin.link(store: store, ref: ref, person: person, tenant: tenant, on: connection)
        }
        invocation.console.show(["store": .string(store), "ref": .string(ref), "changed": .bool(changed)]) {
            invocation.console.print("\(ref) is \(changed ? "" : "already ")\(tenant ?? person ?? "")'s")
        }
        return .done
    }
}
