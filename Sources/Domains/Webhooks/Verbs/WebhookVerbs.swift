import CommandKit
import Encryption
import FoundationEssentials
import Postgres
import Transfers

extension Command {
    static let webhooksList = Command(
        ["webhooks", "list"],
        summary: "List webhooks and the state of their deliveries",
        flags: [
            .single(
                "limit", "N", .integer(1...500), environment: .none, fallback: "50", help: "Show at most this many."),
            .single("after", "ID", .uuid, environment: .none, help: "Only entries after this one."),
        ],
        examples: [Example("millrace webhooks list", "where to, which types, what waits, what is switched off and why")]
    ) { invocation in
        let limit = invocation.parsed.integer("limit") ?? 50
        let after = invocation.parsed.string("after")
        let targets = try await invocation.withSchema { connection in
            try await WebhookAdmin.list(after: after, page: limit, on: connection)
        }
        invocation.console.list("webhooks", targets.map(\.json), table: WebhookAdmin.Target.table(targets))
        if targets.count == limit, invocation.console.format == .human, let last = targets.last {
            invocation.console.note("more may follow: --after \(last.id)")
        }
        return .done
    }

    static let webhooksAdd = Command(
        ["webhooks", "add"],
        summary: "Add a webhook: an address that gets events by HTTP",
        discussion: """
            Prints the id and the secret that signs all deliveries (Standard Webhooks); the secret is shown only this \
            once. Before the first event the address is asked with OPTIONS whether it wants events (CloudEvents' abuse \
            protection); add an address of your own that cannot answer with --trusted. Addresses that are not public, \
            or that have no TLS, must be named in MILLRACE_WEBHOOK_ALLOW, here and where workers run.
            """,
        arguments: [Argument("url", .one, help: "https://…")],
        flags: [
            .repeated(
                "type", "TYPE", environment: .none,
                help: "A type of events; a * at its end matches everything. All types if not given."),
            .single(
                "mode", "MODE", .choice(["binary", "structured", "batch"]), environment: .none, fallback: "binary",
                help: "The format of events; batch sends lists."),
            .single("tenant", "TENANT", environment: .none, help: "Only this tenant's events."),
            .toggle("trusted", environment: .none, help: "The address is our own: do not ask for its consent."),
            Setting.webhookAllow.flag, Setting.encryptionKeys.flag,
        ],
        examples: [
            Example(
                "millrace webhooks add https://app.example.com/hooks --type 'com.classnotes.*'",
                "every event of that family"),
            Example(
                "millrace webhooks add https://app.example.com/hooks --tenant acme --mode batch",
                "one tenant's, in lists"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let url = parsed.string("url") ?? ""
        if let objection = TargetPolicy.strict(invocation.settings.webhookHosts).objection(to: url) {
            throw Failure(
                .misused, objection.sentence, hint: "a host of your own is named in MILLRACE_WEBHOOK_ALLOW")
        }
        let types = parsed.list("type")
        let added = try await invocation.withSchema { connection in
            try await WebhookAdmin.add(
                url, types: types.isEmpty ? ["*"] : types, mode: parsed.string("mode") ?? "binary",
                tenant: parsed.string("tenant"), handshake: !parsed.isOn("trusted"),
                keys: invocation.settings.keys, on: connection)
        }
        invocation.console.show(["id": .string(added.id), "secret": .string(added.secret)]) {
            invocation.console.print("\(added.id)  \(added.secret)")
        }
        invocation.console.note("the secret is not shown again; give it to the receiver, which checks the signatures")
        return .done
    }

    static let webhooksRotate = Command(
        ["webhooks", "rotate"],
        summary: "Give a webhook another secret",
        discussion: """
            Prints the new secret, only this once. Until the overlap is over both secrets sign every delivery, so that \
            the receiver can be changed in between.
            """,
        arguments: [Argument("id", .one, .uuid, help: "the webhook's id")],
        flags: [
            .single(
                "overlap", "DURATION", .duration(.zero ... .seconds(30 * 86_400)), environment: .none, fallback: "1d",
                help: "How long the old secret signs as well."),
            Setting.encryptionKeys.flag,
        ],
        examples: [
            Example(
                "millrace webhooks rotate 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e --overlap 2h", "two hours to change over"
            )
        ]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        let overlap = invocation.parsed.duration("overlap") ?? .seconds(86_400)
        let secret = try await invocation.withSchema { connection in
            try await WebhookAdmin.rotate(id, overlap: overlap, keys: invocation.settings.keys, on: connection)
        }
        invocation.console.show(["id": .string(id.lowercased()), "secret": .string(secret)]) {
            invocation.console.print(secret)
        }
        return .done
    }

    static let webhooksRemove = Command(
        ["webhooks", "remove"],
        summary: "Remove a webhook",
        arguments: [Argument("id", .one, .uuid, help: "the webhook's id")],
        examples: [
            Example("millrace webhooks remove 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e", "with its secrets and deliveries")
        ]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        guard try await invocation.withSchema({ try await WebhookAdmin.remove(id, on: $0) }) else {
            throw Failure.noWebhook(id)
        }
        invocation.console.show(["id": .string(id.lowercased()), "removed": true]) {
            invocation.console.print("\(id) is removed")
        }
        return .done
    }

    static let webhooksEnable = Command(
        ["webhooks", "enable"],
        summary: "Enable a webhook again",
        discussion:
            "It continues where it stopped: events that it has missed and that are still kept (14 days) are sent now.",
        arguments: [Argument("id", .one, .uuid, help: "the webhook's id")],
        examples: [
            Example("millrace webhooks enable 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e", "after its receiver was fixed")
        ]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        let changed = try await invocation.withSchema { try await WebhookAdmin.enable(id, on: $0) }
        invocation.console.show(["id": .string(id.lowercased()), "changed": .bool(changed)]) {
            invocation.console.print("\(id) \(changed ? "is on again" : "was on already")")
        }
        return .done
    }

    static let webhooksRedeliver = Command(
        ["webhooks", "redeliver"],
        summary: "Send an event again",
        discussion: "To every webhook that wants it, or to one. It keeps its id, so that receivers recognise it.",
        arguments: [Argument("event", .one, .uuid, help: "the event's id")],
        flags: [.single("to", "ID", .uuid, environment: .none, help: "Only to this webhook.")],
        examples: [Example("millrace webhooks redeliver 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e", "workers send it now")]
    ) { invocation in
        let event = invocation.parsed.string("event") ?? ""
        let to = invocation.parsed.string("to")
        let count = try await invocation.withSchema { try await WebhookAdmin.redeliver(event, to: to, on: $0) }
        invocation.console.show(["event": .string(event.lowercased()), "webhooks": .int(count)]) {
            invocation.console.print("\(event) goes to \(Humane.count(count, "webhook"))")
        }
        return count > 0 ? .done : .failed
    }

    static let webhooksDeliveries = Command(
        ["webhooks", "deliveries"],
        summary: "List the deliveries of events, newest first",
        flags: [
            .single("to", "ID", .uuid, environment: .none, help: "Only this webhook's."),
            .single("event", "ID", .uuid, environment: .none, help: "Only this event's."),
            .single(
                "limit", "N", .integer(1...500), environment: .none, fallback: "50", help: "Show at most this many."),
        ],
        examples: [
            Example(
                "millrace webhooks deliveries --event 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e",
                "who has it, and who does not have it yet")
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let rows = try await invocation.withSchema { connection in
            try await WebhookAdmin.deliveries(
                webhook: parsed.string("to"), event: parsed.string("event"), page: parsed.integer("limit") ?? 50,
                on: connection)
        }
        let values = rows.compactMap { try? JSONValue.read($0) }
        var table = Table(
            [
                .init("event"), .init("webhook"), .init("state"), .init("attempts", .trailing),
                .init("code", .trailing),
                .init("error", shrinks: true),
            ], whenEmpty: "no deliveries")
        for value in values {
            func text(_ key: String) -> String {
                value[key].map { $0.text ?? $0.integer.map { "\($0)" } ?? "" } ?? ""
            }
            table.add([
                .init(text("event")), .init(text("webhook")), .init(text("state")), .init(text("attempts")),
                .init(text("code")), .init(text("error")),
            ])
        }
        invocation.console.list("deliveries", values, table: table)
        return .done
    }
}

extension Failure {
    static func noWebhook(_ id: String) -> Failure {
        Failure(.notFound, "there is no webhook \(id)", hint: "see millrace webhooks list")
    }
}

extension WebhookAdmin.Target {
    var json: JSONValue { .raw(String(decoding: row, as: UTF8.self)) }

    static func table(_ targets: [WebhookAdmin.Target]) -> Table {
        var table = Table(
            [
                .init("id"), .init("url", shrinks: true), .init("types", shrinks: true), .init("mode"), .init("tenant"),
                .init("state"), .init("waiting", .trailing), .init("rate", .trailing), .init("last success"),
                .init("reason", shrinks: true),
            ], whenEmpty: "nobody is told of events by HTTP")
        for target in targets {
            table.add([
                .init(target.id), .init(target.url, .bold), .init(target.types.joined(separator: " ")),
                .init(target.mode), .init(target.tenant ?? "-"),
                .init(target.state, target.state == "disabled" ? .red : .plain), "\(target.waiting)",
                .init(target.rate.map { "\($0)/min" } ?? "-"),
                .init(target.succeededAt.map { InstantText.spell($0) } ?? "-"), .init(target.reason ?? ""),
            ])
        }
        return table
    }
}
