import CommandKit
import FoundationEssentials
import Postgres

extension Command {
    static let noticesList = Command(
        ["notices", "list"],
        summary: "List notices, newest first",
        flags: [
            .single("person", "PERSON", environment: .none, help: "Only notices to this person."),
            .single(
                "status", "STATUS",
                .choice(["pending", "attempting", "accepted", "failed", "suppressed", "expired", "cancelled"]),
                environment: .none, help: "Only notices with this status."),
            .toggle("alarms", environment: .none, help: "Only alarms."),
            .single(
                "limit", "N", .integer(1...500), environment: .none, fallback: "50", help: "Show at most this many."),
            .single("after", "UUID", .uuid, environment: .none, help: "Only entries after this one."),
        ],
        examples: [
            Example("millrace notices list --person anna", "what anna was told, by which channel"),
            Example("millrace notices list --alarms --status failed", "alarms that reached nobody"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let limit = parsed.integer("limit") ?? 50
        let notices = try await invocation.withSchema { connection in
            try await NoticeAdmin.list(
                person: parsed.string("person"), status: parsed.string("status"), onlyAlarms: parsed.isOn("alarms"),
                after: parsed.string("after")?.lowercased(), page: limit, on: connection)
        }
        invocation.console.list("notices", notices.map(\.json), table: NoticeAdmin.Notice.table(notices))
        if notices.count == limit, invocation.console.format == .human, let last = notices.last {
            invocation.console.note("more may follow: --after \(last.id)")
        }
        return .done
    }

    static let noticesShow = Command(
        ["notices", "show"],
        summary: "Show a notice with all its sendings and attempts",
        arguments: [Argument("id", .one, .uuid, help: "the notice's id")],
        examples: [Example("millrace notices show 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e", "what became of it")]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        let bytes = try await invocation.withSchema { try await NoticeAdmin.story(id, on: $0) }
        guard let bytes, let story = try? JSONValue.read(bytes) else {
            throw Failure(.notFound, "there is no notice \(id)", hint: "see millrace notices list")
        }
        invocation.console.show(story) {
            for line in NoticeStory.lines(story) { invocation.console.print(line) }
        }
        return .done
    }

    static let noticesSend = Command(
        ["notices", "send"],
        summary: "Send a notice to a person",
        discussion: """
            Uses the channels that the person has chosen, or the given ones. Prints the notice's id. A key is used \
            once per person: a second notice with it is not sent, and the first one's id is printed.
            """,
        arguments: [
            Argument("person", help: "the person to notify"),
            Argument("kind", help: "the kind, such as daily_reminder"),
        ],
        flags: [
            .single(
                "data", "JSON", environment: .none, fallback: "{}",
                help: "Its contents: title, body, url and further data of its kind."),
            .repeated("channel", "CHANNEL", environment: .none, help: "push, mail, sms or voice."),
            .single(
                "key", "KEY", environment: .none,
                help: "The key by which it can be moved or cancelled, and is not sent twice."),
            .single("at", "TIME", .instant, environment: .none, help: "Not before this time, in ISO 8601."),
            .single("expires", "TIME", .instant, environment: .none, help: "Not after this time."),
            .toggle(
                "alarm", environment: .none, help: "Send it at any hour, by every channel, until a provider takes it."),
        ],
        examples: [
            Example(
                "millrace notices send anna note --data '{\"title\": \"Hello\", \"body\": \"It works.\"}'",
                "by what anna has chosen"),
            Example(
                "millrace notices send anna alarm.raised --data '{\"name\": \"Ben\", \"test\": true}' --alarm",
                "a rehearsal"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let data = parsed.string("data") ?? "{}"
        guard case .object? = try? JSONValue.read(data) else {
            throw Failure(.misused, "--data takes a JSON object", hint: "put JSON in single quotes")
        }
        let order = NoticeAdmin.Order(
            person: parsed.string("person") ?? "", kind: parsed.string("kind") ?? "", data: data,
            channels: parsed.list("channel").isEmpty ? nil : parsed.list("channel"), key: parsed.string("key"),
            at: try parsed.string("at").map { text in try InstantText.read(text) },
            expiresAt: try parsed.string("expires").map { text in try InstantText.read(text) },
            isAlarm: parsed.isOn("alarm"))
        let id = try await invocation.withSchema { try await NoticeAdmin.send(order, on: $0) }
        invocation.console.show(["id": .string(id)]) { invocation.console.print(id) }
        return .done
    }

    static let noticesCancel = Command(
        ["notices", "cancel"],
        summary: "Cancel a notice that has not been sent",
        arguments: [Argument("person", help: "the recipient"), Argument("key", help: "its key")],
        examples: [Example("millrace notices cancel anna daily_reminder:2026-11-22", "exit 4 when it is too late")]
    ) { invocation in
        let (person, key) = (invocation.parsed.string("person") ?? "", invocation.parsed.string("key") ?? "")
        let cancelled = try await invocation.withSchema {
            try await NoticeAdmin.cancel(person: person, key: key, on: $0)
        }
        invocation.console.show(["person": .string(person), "key": .string(key), "cancelled": .bool(cancelled)]) {
            invocation.console.print(cancelled ? "it is cancelled" : "nothing of it was still waiting")
        }
        return cancelled ? .done : .conflict
    }
}

/// A notice's story, for people.
enum NoticeStory {
    static func lines(_ story: JSONValue) -> [String] {
        func text(_ name: String, of value: JSONValue) -> String? {
            switch value[name] {
            case .string(let text)?: DisplayWidth.harmless(text)
            case .number(let digits)?: digits
            case .int(let number)?: "\(number)"
            case .bool(let truth)?: truth ? "yes" : "no"
            default: nil
            }
        }
        var lines = [
            "\(text("kind", of: story) ?? "?") for \(text("person", of: story) ?? "?"): \(text("status", of: story) ?? "?")"
        ]
        for (name, title) in [
            ("key", "key"), ("alarm", "alarm"), ("channel", "channel"), ("provider", "provider"), ("due_at", "due"),
            ("accepted_at", "accepted"), ("expires_at", "expires"), ("attempts", "tries"),
            ("duplicates", "duplicates"), ("error", "error"),
        ] {
            if let value = text(name, of: story) { lines.append("  \(title): \(value)") }
        }
        if case .array(let sendings)? = story["sendings"] {
            for one in sendings {
                lines.append(
                    "  by \(text("channel", of: one) ?? "?"): \(text("status", of: one) ?? "?")\(text("error", of: one).map { ", \($0)" } ?? "") (\(text("id", of: one) ?? "?"))"
                )
            }
        }
        if case .array(let tries)? = story["attempts_made"] {
            for one in tries {
                lines.append(
                    "  \(text("at", of: one) ?? "?")  try \(text("n", of: one) ?? "?") by \(text("provider", of: one) ?? "?"): \(text("outcome", of: one) ?? "?")\(text("error", of: one).map { ", \($0)" } ?? "")"
                )
            }
        }
        return lines
    }
}

extension NoticeAdmin.Notice {
    var json: JSONValue {
        [
            "id": .string(id), "person": .string(person), "kind": .string(kind), "key": JSONValue(key),
            "channel": JSONValue(channel), "provider": JSONValue(provider), "status": .string(status),
            "attempts": .int(attempts), "duplicates": .int(duplicates), "alarm": .bool(isAlarm),
            "due_at": .string(InstantText.spell(dueAt)),
            "accepted_at": JSONValue(acceptedAt.map { InstantText.spell($0) }), "error": JSONValue(error),
        ]
    }

    static func table(_ notices: [NoticeAdmin.Notice]) -> Table {
        var table = Table(
            [
                .init("id"), .init("person", shrinks: true), .init("kind"), .init("by"), .init("status"),
                .init("tries", .trailing), .init("due"), .init("error", shrinks: true),
            ], whenEmpty: "there is no such notice")
        for notice in notices {
            let style: Style =
                switch notice.status {
                case "accepted": .green
                case "failed", "expired": .red
                default: .plain
                }
            table.add([
                .init(notice.id), .init(notice.person), .init(notice.kind),
                .init(notice.provider ?? notice.channel ?? ""),
                .init(notice.status, style), "\(notice.attempts)", .init(InstantText.spell(notice.dueAt)),
                .init(notice.error ?? "", .red),
            ])
        }
        return table
    }
}
