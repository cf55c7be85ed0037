import CommandKit
import Postgres

extension Command {
    static let subscriptionsPlansList = Command(
        ["subscriptions", "plans", "list"],
        summary: "List the plans, with their quotas and products",
        examples: [Example("millrace subscriptions plans list", "the highest rank first")]
    ) { invocation in
        let rows = try await invocation.withSchema { try await SubscriptionAdmin.plans(on: $0) }
            .map { try JSONValue.read($0) }
        var table = Table(
            [
                .init("plan", shrinks: true), .init("rank", .trailing), .init("quotas", shrinks: true),
                .init("period"), .init("products", shrinks: true), .init("subscriptions", .trailing), .init("default"),
            ], whenEmpty: "there is no plan yet")
        for row in rows {
            table.add([
                .init(row["name"]?.text ?? ""), "\(row["rank"]?.integer ?? 0)", .init(row["quotas"]?.compact ?? ""),
                .init(row["period"]?.text ?? ""),
                .init((row["products"]?.items ?? []).compactMap(\.text).joined(separator: " ")),
                "\(row["subscriptions"]?.integer ?? 0)", .init(row["is_default"] == .bool(true) ? "yes" : ""),
            ])
        }
        invocation.console.list("plans", rows, table: table)
        return .done
    }

    static let subscriptionsPlansSet = Command(
        ["subscriptions", "plans", "set"],
        summary: "Make a plan, or change it",
        discussion: """
            What is not given stays as it is. --quota and --product replace all of the plan's. Accounts get new quotas \
            within moments; those that an admin has set by hand stay.
            """,
        arguments: [Argument("plan", help: "its name")],
        flags: [
            .repeated("quota", "NAME=N", environment: .none, help: "A quota, such as pages=1000."),
            .repeated(
                "product", "STORE:ID", environment: .none,
                help: "What a store calls it, such as stripe:price_1QX or apple:com.example.pro."),
            .single(
                "rank", "N", .integer(-1_000_000...1_000_000), environment: .none,
                help: "Of an account's plans the one with the highest rank counts."),
            .single(
                "period", "PERIOD", .choice(["day", "week", "month", "year"]), environment: .none,
                help: "What the quotas are for; a month by default."),
            .single(
                "grace", "DURATION", .duration(.zero ... .seconds(7_776_000)), environment: .none,
                help: "How long it lasts without payment, if the store says nothing; 3d by default."),
            .single(
                "notice", "DURATION", .duration(.zero ... .seconds(7_776_000)), environment: .none,
                help: "How long before its end the person is told; 3d by default."),
            .single("title", "TEXT", environment: .none, help: "What people read in notices."),
            .toggle("default", environment: .none, help: "Accounts without a subscription have it."),
        ],
        examples: [
            Example("millrace subscriptions plans set free --quota pages=20 --default", "without a subscription"),
            Example(
                "millrace subscriptions plans set pro --quota pages=1000 --rank 10 --product stripe:price_1QX",
                "one that is bought"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        var plan = SubscriptionAdmin.Plan(name: parsed.string("plan") ?? "")
        plan.quotas = try quotas(parsed.list("quota"))
        plan.products = parsed.list("product").isEmpty ? nil : parsed.list("product")
        plan.rank = parsed.integer("rank")
        plan.period = parsed.string("period")
        plan.graceSeconds = parsed.duration("grace").map { Int($0.components.seconds) }
        plan.noticeSeconds = parsed.duration("notice").map { Int($0.components.seconds) }
        plan.title = parsed.string("title")
        plan.isDefault = parsed.isOn("default") ? true : parsed.isOff("default") ? false : nil
        let wanted = plan
        try await invocation.withSchema { try await SubscriptionAdmin.setPlan(wanted, on: $0) }
        invocation.console.show(["plan": .string(wanted.name), "set": true]) {
            invocation.console.print("\(wanted.name) is set")
        }
        return .done
    }

    private static func quotas(_ given: [String]) throws -> String? {
        guard !given.isEmpty else { return nil }
        return try JSONValue.object(
            given.map { text in
                let pair = text.split(separator: "=", omittingEmptySubsequences: false).map(String.init)
                guard pair.count == 2, let most = Int(pair[1]), most >= 0 else {
                    throw Failure(.misused, "--quota takes a name and a number such as pages=1000")
                }
                return .init(key: pair[0], value: .int(most))
            }
        ).compact
    }

    static let subscriptionsPlansRemove = Command(
        ["subscriptions", "plans", "remove"],
        summary: "Remove a plan that nobody has",
        arguments: [Argument("plan", help: "the plan")],
        examples: [Example("millrace subscriptions plans remove trial-2029", "")]
    ) { invocation in
        let name = invocation.parsed.string("plan") ?? ""
        let removed = try await invocation.withSchema { try await SubscriptionAdmin.removePlan(name, on: $0) }
        guard removed else {
            throw Failure(
                .notFound, "there is no plan \(DisplayWidth.harmless(name))",
                hint: "see millrace subscriptions plans list")
        }
        invocation.console.show(["plan": .string(name), "removed": .bool(removed)]) {
            invocation.console.print("\(name) is removed")
        }
        return .done
    }
}
