import MillraceJobs
import MillraceQueues
import Postgres

extension Command {
    static let queuesLimit = Command(
        ["queues", "limit"],
        summary: "Show or change how many jobs may run at once, and how often they may start",
        discussion: """
            Limits hold for the whole fleet from now on; jobs that already run continue. Without a setting, the limits \
            are listed. Settings that are not given stay as they are; none removes a bound, --remove the whole limit. \
            A key that ends in * is the rule for every key that begins so; each key counts separately. A tenant's \
            weight is its share of its queues relative to the other tenants, 1 unless set. Jobs that wait because \
            their key is full are held back (parked in JSON).
            """,
        arguments: [Argument("queue", .optional, .queueName, help: "the queue's name")],
        flags: [
            .single(
                "key", "KEY", environment: .none, help: "Limit the jobs with this limit key, or with a prefix and *."),
            .single("tenant", "TENANT", environment: .none, help: "Limit the jobs of this tenant."),
            .single(
                "concurrency", "N", .bound(0), environment: .none,
                help: "At most this many jobs run at once; 0 stops all, none removes the bound."),
            .single(
                "rate", "N/SPAN", .rate, environment: .none,
                help: "At most N starts in each span: 10/1s, 100/1m; or none."),
            .single(
                "burst", "N", .integer(1...1_000_000_000), environment: .none,
                help: "At most this many starts at once after a rest; as many as the rate unless set."),
            .single(
                "weight", "N", .weight, environment: .none, help: "A tenant's share relative to the others; or none."),
            .toggle("remove", environment: .none, help: "Remove the limit."), .create(.queue),
        ],
        examples: [
            Example("millrace queues limit", "all limits, and what they hold back"),
            Example("millrace queues limit mail --concurrency 50 --rate 10/1s --burst 20", "a queue"),
            Example("millrace queues limit --key 'user:*' --concurrency 3", "every user, each three"),
            Example("millrace queues limit --tenant acme --weight 5", "a share of five, where the others have one"),
        ]
    ) { invocation in
        guard let subject = try invocation.limitSubject else { return try await invocation.listLimits() }
        let changes = try invocation.limitChanges
        return try await invocation.withSchema { connection in
            if case .queue(let name) = subject, !invocation.creates,
                let unknown = try await Invocation.unknown(.queue, [name], on: connection)
            {
                throw unknown
            }
            let rows = try await Queue.limits(on: connection)
            let old = rows.first { $0.subject == subject }
            guard invocation.setsLimit else {
                return try invocation.show(rows.filter { $0.subject == subject }, of: subject)
            }
            let limit = try changes(old?.limit ?? Limit(), subject)
            let changed = try await Queue.setLimit(of: subject, to: limit, on: connection)
            let now = try await Queue.limits(on: connection).first { $0.subject == subject }
            invocation.console.show([
                "scope": .string(subject.scope), "name": .string(subject.name), "changed": .bool(changed),
                "limit": now?.json ?? .null,
            ]) {
                let text = now.map { $0.limit.sentence } ?? "no limit"
                invocation.console.print("\(subject.scope) \(subject.name): \(text)\(changed ? "" : " already")")
            }
            return .done
        }
    }
}

extension ValueKind {
    fileprivate static func bound(_ least: Int) -> ValueKind {
        .custom(expects: "a whole number of at least \(least), or none") { text in
            text == "none" || Int(text).map { (least...1_000_000_000).contains($0) } ?? false
                ? nil : "takes a whole number of at least \(least), or none"
        }
    }

    fileprivate static let rate = ValueKind.custom(expects: "a count and a span such as 10/1s, or none") { text in
        text == "none" || RateText.read(text) != nil ? nil : "takes a count and a span such as 10/1s or 100/1m, or none"
    }

    fileprivate static let weight = ValueKind.custom(expects: "a number above 0, or none") { text in
        text == "none" || Double(text).map { (0.001...1_000_000).contains($0) } ?? false
            ? nil : "takes a number from 0.001 to 1000000, or none"
    }
}

extension Invocation {
    /// The subject of the limit; nil when none is named.
    fileprivate var limitSubject: Limit.Subject? {
        get throws {
            let named = [
                parsed.string("queue").map(Limit.Subject.queue), parsed.string("key").map(Limit.Subject.key),
                parsed.string("tenant").map(Limit.Subject.tenant),
            ].compactMap { $0 }
            guard named.count < 2 else {
                throw Failure(.misused, "a limit is for a queue, a key or a tenant", hint: "name one of them")
            }
            if named.isEmpty, setsLimit {
                throw Failure(.misused, "the limit of what?", hint: "name a queue, or give --key or --tenant")
            }
            return named.first
        }
    }

    fileprivate var setsLimit: Bool {
        parsed.isOn("remove")
            || ["concurrency", "rate", "burst", "weight"].contains {
                parsed.string($0) != nil || parsed.integer($0) != nil
            }
    }

    /// The changed limit; nil when nothing is left of it.
    fileprivate var limitChanges: @Sendable (Limit, Limit.Subject) throws -> Limit? {
        get throws {
            let remove = parsed.isOn("remove")
            let concurrency = parsed.string("concurrency")
            let rate = parsed.string("rate")
            let burst = parsed.integer("burst")
            let weight = parsed.string("weight")
            if remove, concurrency != nil || rate != nil || burst != nil || weight != nil {
                throw Failure(.misused, "--remove removes the whole limit; nothing else can be set with it")
            }
            return { limit, subject in
                if remove { return nil }
                var limit = limit
                if let concurrency { limit.concurrency = Int(concurrency) }
                if let rate {
                    let before = limit.rate?.burst
                    limit.rate = RateText.read(rate)
                    if burst == nil, let before, before != limit.rate?.count { limit.rate?.burst = before }
                }
                if let burst {
                    guard limit.rate != nil else {
                        throw Failure(.misused, "--burst without a rate", hint: "give --rate too, such as --rate 10/1s")
                    }
                    limit.rate?.burst = burst
                }
                if let weight {
                    guard case .tenant = subject else {
                        throw Failure(.misused, "only a tenant has a weight", hint: "name it with --tenant")
                    }
                    limit.weight = Double(weight)
                }
                return limit == Limit() ? nil : limit
            }
        }
    }

    fileprivate func listLimits() async throws -> ExitCode {
        let rows = try await withSchema { try await Queue.limits(on: $0) }
        console.list("limits", rows.map(\.json), table: LimitRow.table(rows))
        return .done
    }

    fileprivate func show(_ rows: [LimitRow], of subject: Limit.Subject) throws -> ExitCode {
        guard !rows.isEmpty else {
            throw Failure(
                .notFound, "there is no limit for \(subject.scope) \(subject.name)",
                hint: "set one with --concurrency or --rate; millrace queues limit lists them all")
        }
        console.list("limits", rows.map(\.json), table: LimitRow.table(rows))
        return .done
    }
}
