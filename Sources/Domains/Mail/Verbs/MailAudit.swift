import CommandKit
import FoundationEssentials

extension Command {
    static let mailAudit = Command(
        ["mail", "audit"],
        summary: "List what operators did with mail, newest first",
        discussion: """
            Entries about messages that were cancelled, moved or decided, addresses that were suppressed or erased, \
            and every switch to another service. It contains no address. Nobody can change or delete an entry.
            """,
        flags: [
            .single(
                "what", "WHAT",
                .choice(["cancel", "reschedule", "resolve", "suppress", "unsuppress", "erase", "switch"]),
                environment: .none, help: "Only entries of this kind."),
            .single("by", "ROLE", .text, environment: .none, help: "Only actions of this role."),
            .single("message", "ID", .uuid, environment: .none, help: "Only about this message."),
            .single("since", "TIME", .instant, environment: .none, help: "Only entries since then."),
            .single("limit", "N", .integer(1...500), fallback: "50", help: "Show at most this many."),
            .single(
                "after", "N", .integer(1...1_000_000_000_000_000), environment: .none,
                help: "Only entries older than this one."),
        ],
        examples: [
            Example("millrace mail audit --what erase --since 2030-01-01T00:00:00Z", "who erased people this year")
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let limit = parsed.integer("limit") ?? 50
        let since = try parsed.string("since").map { text in try InstantText.read(text) }
        let entries = try await invocation.withSchema { connection in
            try await MailAdmin.audit(
                what: parsed.string("what"), by: parsed.string("by"), message: parsed.string("message"), since: since,
                after: parsed.integer("after").map { Int64($0) }, page: limit, on: connection)
        }
        var table = Table(
            [
                Table.Column("id", .trailing), Table.Column("at"), Table.Column("by"), Table.Column("what"),
                Table.Column("message"), Table.Column("detail", shrinks: true),
            ], whenEmpty: "no entries")
        for entry in entries {
            table.add([
                Table.Cell("\(entry.id)"), Table.Cell(entry.at.formatted(.iso8601)), Table.Cell(entry.by),
                Table.Cell(entry.what, .bold), Table.Cell(entry.message ?? "-"), Table.Cell(entry.detail),
            ])
        }
        invocation.console.list(
            "entries", entries.map { .raw(String(decoding: $0.row, as: UTF8.self)) }, table: table)
        if entries.count == limit, invocation.console.format == .human, let last = entries.last {
            invocation.console.note("more may follow: --after \(last.id)")
        }
        return .done
    }
}
