import FoundationEssentials
import Postgres
import RoomKit

extension Command {
    static let mailList = Command(
        ["mail", "list"],
        summary: "List messages, newest first",
        flags: [
            .single(
                "status", "STATUS", .choice(MailStatus.all), environment: .none, help: "Only messages with this status."
            ),
            .single("since", "TIME", .instant, environment: .none, help: "Only messages sent to Millrace since then."),
            .single("limit", "N", .integer(1...500), fallback: "50", help: "Show at most this many."),
            .single("after", "ID", .uuid, environment: .none, help: "Only messages older than this one."),
        ],
        examples: [
            Example(
                "millrace mail list --status parked",
                "in doubt: nobody knows whether they were sent, and somebody has to decide")
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let limit = parsed.integer("limit") ?? 50
        let since = try parsed.string("since").map { text in try InstantText.read(text) }
        let rows = try await invocation.withSchema { connection in
            try await MailAdmin.list(
                status: parsed.string("status"), since: since, after: parsed.string("after"), page: limit,
                on: connection)
        }
        var table = Table(
            [
                Table.Column("id"), Table.Column("status"), Table.Column("service"), Table.Column("kind"),
                Table.Column("template"), Table.Column("attempts", .trailing), Table.Column("created"),
                Table.Column("error", shrinks: true),
            ], whenEmpty: "no messages")
        for row in rows {
            table.add([
                Table.Cell(row.id), Table.Cell(row.status, .bold), Table.Cell(row.service ?? "-"),
                Table.Cell(row.kind), Table.Cell(row.template ?? "-"), Table.Cell("\(row.attempts)"),
                Table.Cell(row.created.formatted(.iso8601)), Table.Cell(row.error ?? ""),
            ])
        }
        invocation.console.list(
            "messages", rows.map { .raw(String(decoding: $0.row, as: UTF8.self)) }, table: table)
        if rows.count == limit, invocation.console.format == .human, let last = rows.last {
            invocation.console.note("more may follow: --after \(last.id)")
        }
        return .done
    }

    static let mailShow = Command(
        ["mail", "show"],
        summary: "Show a message with all its attempts and events",
        discussion: "With --raw also addresses and text. template_version is the version of its template.",
        arguments: [Argument("id", .one, .uuid, help: "the message's id")],
        flags: [.toggle("raw", environment: .none, help: "With addresses and content.")],
        examples: [Example("millrace mail show 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e", "what became of it")]
    ) { invocation in
        let story = try await invocation.story(raw: invocation.parsed.isOn("raw"))
        invocation.console.show(story) {
            for line in MailStory.lines(story) { invocation.console.print(line) }
        }
        return .done
    }

    static let mailPreview = Command(
        ["mail", "preview"],
        summary: "Print a message as it is sent",
        discussion:
            "A message whose template has not been rendered has no text yet: then its template's data are printed.",
        arguments: [Argument("id", .one, .uuid, help: "the message's id")],
        flags: [.toggle("html", environment: .none, help: "Print the HTML part, not the text.")],
        examples: [
            Example("millrace mail preview 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e --html > mail.html", "to look at it")
        ]
    ) { invocation in
        let story = try await invocation.story(raw: true)
        guard case .object? = story["content"], let content = story["content"] else {
            throw Failure(.notFound, "its content was erased")
        }
        let part = invocation.parsed.isOn("html") ? "body_html" : "body_text"
        invocation.console.show(content) {
            if part == "body_text", let subject = content["subject"]?.text {
                invocation.console.print("Subject: \(subject)\n")
            }
            if let words = content[part]?.text {
                invocation.console.print(words)
            } else if content["frozen_at"] == .null {
                invocation.console.print("not rendered yet; data \((content["data"] ?? .null).compact)")
            } else {
                invocation.console.note("it has no such part")
            }
        }
        return .done
    }

    static let mailCancel = Command(
        ["mail", "cancel"],
        summary: "Cancel a message that no provider has got yet",
        arguments: [Argument("id", .one, .uuid, help: "the message's id")],
        examples: [Example("millrace mail cancel 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e", "exit 4 when it is too late")]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        let changed = try await invocation.withSchema { try await MailAdmin.cancel(id, on: $0) }
        invocation.console.show(["id": .string(id), "changed": .bool(changed)]) {
            invocation.console.print("\(id)  cancelled\(changed ? "" : " already")")
        }
        return .done
    }

    static let mailResolve = Command(
        ["mail", "resolve"],
        summary: "Decide about a parked message: nobody knows whether it was sent",
        arguments: [
            Argument("id", .one, .uuid, help: "the message's id"),
            Argument("verdict", .one, .choice(["accepted", "refused", "again"]), help: "accepted, refused, or again"),
        ],
        examples: [
            Example(
                "millrace mail resolve 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e accepted",
                "the provider's own page shows it")
        ]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        let verdict = invocation.parsed.string("verdict") ?? ""
        _ = try await invocation.withSchema { try await MailAdmin.resolve(id, verdict, on: $0) }
        invocation.console.show(["id": .string(id), "verdict": .string(verdict)]) {
            invocation.console.print("\(id)  \(verdict)")
        }
        return .done
    }

    static let mailSuppress = Command(
        ["mail", "suppress"],
        summary: "Suppress an address, lift a suppression, or list the suppressed",
        discussion:
            "A permanent bounce suppresses an address for everything, a complaint for marketing and ordinary mail, a click on unsubscribe for marketing.",
        arguments: [Argument("address", .optional, help: "the address; left out with --list")],
        flags: [
            .single(
                "purpose", "PURPOSE", .choice(["*", "transactional", "security", "alarm", "marketing"]),
                environment: .none, fallback: "*", help: "The kind of mail; * is all."),
            .single(
                "reason", "TEXT", environment: .none, fallback: "by hand",
                help: "The reason. It is kept even after the address is erased."),
            .toggle("remove", environment: .none, help: "Allow mail to the address again."),
            .toggle("list", environment: .none, help: "List the suppressed addresses."),
            .single("limit", "N", .integer(1...500), fallback: "50", help: "With --list: show at most this many."),
            .single("after", "HASH", environment: .none, help: "With --list: only entries after this one."),
        ],
        examples: [
            Example("millrace mail suppress ada@example.org --purpose marketing", "no more newsletters"),
            Example("millrace mail suppress --list", "who gets none, and why"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        if parsed.isOn("list") { return try await invocation.listSuppressions() }
        guard let address = parsed.string("address") else {
            throw Failure(.misused, "the address is missing", hint: "give one, or --list")
        }
        let purpose = parsed.string("purpose") ?? "*"
        let changed = try await invocation.withSchema { connection in
            parsed.isOn("remove")
                ? try await MailAdmin.unsuppress(address, purpose: purpose, on: connection)
                : try await MailAdmin.suppress(
                    address, reason: parsed.string("reason") ?? "by hand", purpose: purpose, on: connection)
        }
        let word = parsed.isOn("remove") ? "gets mail again" : "gets no more mail"
        invocation.console.show(["changed": .bool(changed), "purpose": .string(purpose)]) {
            invocation.console.print("\(word)\(changed ? "" : ", as before")")
        }
        return .done
    }

    static let mailReconcile = Command(
        ["mail", "reconcile"],
        summary: "Ask the providers about messages that they took and have said nothing about since",
        discussion:
            "Workers do this by themselves: every five minutes, for messages that have been silent for an hour.",
        flags: [
            .single(
                "older", "DURATION", .duration(.zero ... .seconds(2_592_000)), environment: .none, fallback: "1h",
                help: "Only messages that have been silent for this long."),
            .single("limit", "N", .integer(1...500), fallback: "100", help: "Ask about at most this many."),
        ],
        examples: [Example("millrace mail reconcile --older 10m", "without waiting for the workers")]
    ) { invocation in
        let parsed = invocation.parsed
        try await invocation.withSchema { _ in }
        let pool = Pool(try invocation.connectionOptions(), size: 2)
        let mail = try MailWiring(
            invocation.settings, pool: pool, supervisor: try invocation.supervisor(name: "reconcile"),
            log: invocation.settings.log)
        let sum = try await mail.service.reconcile(
            olderThan: parsed.duration("older") ?? .seconds(3600), page: parsed.integer("limit") ?? 100)
        await pool.close()
        invocation.console.show([
            "asked": .int(sum.asked), "told": .int(sum.told), "unanswered": .int(sum.unanswered),
        ]) {
            invocation.console.print(
                "\(sum.asked) asked about, \(sum.told) with news, \(sum.unanswered) without an answer")
        }
        return sum.unanswered == 0 ? .done : .failed
    }

    static let mailErase = Command(
        ["mail", "erase"],
        summary: "Erase a person's address and messages everywhere",
        discussion: """
            Erases contents, addresses, events, and the arguments and logs of jobs. The remaining records say that \
            something was sent, but not what or to whom; a suppressed address stays suppressed through a hash. \
            --dry-run runs the erasure, rolls it back, and prints what would be erased.
            """,
        arguments: [Argument("address", .one, help: "the address")],
        flags: [
            .toggle("dry-run", environment: .none, help: "Print what would be deleted, and change nothing."),
            .toggle("yes", environment: .none, help: "Do not ask for confirmation; needed without a terminal."),
        ],
        examples: [Example("millrace mail erase ada@example.org --dry-run", "how much there is")]
    ) { invocation in
        let parsed = invocation.parsed
        let isDry = parsed.isOn("dry-run")
        guard isDry || parsed.isOn("yes") else {
            throw Failure(.misused, "this cannot be undone", hint: "look with --dry-run, then say --yes")
        }
        let address = parsed.string("address") ?? ""
        let gone = try await invocation.withSchema { connection -> [UInt8] in
            guard isDry else { return try await MailAdmin.erase(address, on: connection) }
            try await connection.begin()
            let gone = try await MailAdmin.erase(address, on: connection)
            _ = try await connection.execute("rollback")
            return gone
        }
        let counts = JSONValue.raw(String(decoding: gone, as: UTF8.self))
        let read = try JSONValue.read(gone)
        invocation.console.show(["dry_run": .bool(isDry), "erased": counts]) {
            let messages = read["messages"]?.integer ?? 0
            let jobs = read["jobs"]?.integer ?? 0
            invocation.console.print(
                "\(isDry ? "would erase" : "erased") \(Humane.count(messages, "message")), with what \(Humane.count(jobs, "job")) had of it"
            )
        }
        return .done
    }
}

extension Invocation {
    fileprivate func story(raw: Bool) async throws -> JSONValue {
        let id = parsed.string("id") ?? ""
        guard let story = try await withSchema({ try await MailAdmin.story(id, raw: raw, on: $0) }) else {
            throw Failure(.notFound, "there is no message \(id)", hint: "see millrace mail list")
        }
        return try JSONValue.read(story)
    }

    fileprivate func listSuppressions() async throws -> ExitCode {
        let limit = parsed.integer("limit") ?? 50
        let rows = try await withSchema {
            try await MailAdmin.suppressions(after: parsed.string("after"), page: limit, on: $0)
        }
        var table = Table(
            [
                Table.Column("address", shrinks: true), Table.Column("purpose"), Table.Column("reason", shrinks: true),
                Table.Column("by"), Table.Column("at"),
            ], whenEmpty: "nobody is suppressed")
        for row in rows {
            table.add([
                Table.Cell(row.address ?? "erased", row.address == nil ? .dim : .plain), Table.Cell(row.purpose),
                Table.Cell(row.reason), Table.Cell(row.by), Table.Cell(row.at.formatted(.iso8601)),
            ])
        }
        console.list(
            "suppressions",
            rows.map { row in
                [
                    "hash": .string(row.hash), "purpose": .string(row.purpose), "reason": .string(row.reason),
                    "address": JSONValue(row.address), "by": .string(row.by),
                    "at": .string(row.at.formatted(.iso8601)),
                ]
            }, table: table)
        if rows.count == limit, console.format == .human, let last = rows.last {
            console.note("more may follow: --after \(last.hash)")
        }
        return .done
    }
}

/// A message's story for people.
enum MailStory {
    static func lines(_ story: JSONValue) -> [String] {
        func text(_ name: String, in value: JSONValue) -> String? {
            switch value[name] {
            case .string(let text)?: DisplayWidth.harmless(text)
            case .int(let number)?: "\(number)"
            case .number(let digits)?: digits
            default: nil
            }
        }
        func list(_ name: String) -> [JSONValue] {
            guard case .array(let items)? = story[name] else { return [] }
            return items
        }
        var lines = ["\(text("id", in: story) ?? "?")  \(text("status", in: story) ?? "?")"]
        for name in [
            "kind", "service", "template", "template_version", "locale", "priority", "purpose", "tenant",
            "provider_message_id", "created_at", "scheduled_at", "sent_at", "error",
        ] {
            if let value = text(name, in: story) {
                lines.append(name + String(repeating: " ", count: max(1, 21 - name.count)) + value)
            }
        }
        for attempt in list("attempts") {
            let parts = ["at", "provider", "outcome", "error", "code"].compactMap { text($0, in: attempt) }
            let ms = text("ms", in: attempt).map { "  \($0) ms" } ?? ""
            lines.append("attempt \(text("n", in: attempt) ?? "?")  \(parts.joined(separator: "  "))\(ms)")
        }
        for event in list("events") {
            let parts = ["at", "type", "recipient"].compactMap { text($0, in: event) }
            lines.append("event      \(parts.joined(separator: "  "))")
        }
        if let content = story["content"], content != .null { lines.append("content    \(content.compact)") }
        return lines
    }
}
