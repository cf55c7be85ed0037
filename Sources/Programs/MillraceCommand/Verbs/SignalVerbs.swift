import FoundationEssentials
import JSON
import Jobs
import Postgres
import Queues

extension Command {
    static let signal = Command(
        ["signal"],
        summary: "Tell jobs that wait for a signal",
        discussion: """
            A job that waits for this name and key goes on; with --all every one that does. If none waits yet, the signal is kept \
            for who comes. With --id a second call with the same content sends nothing, and one with other content is refused \
            with exit 4.
            """,
        arguments: [
            Argument("name", .one, help: "what has happened, such as payment-received"),
            Argument("payload", .optional, help: "JSON, @file, or - for standard input; null if not given"),
        ],
        flags: [
            .single("key", "KEY", environment: .none, fallback: "", help: "Which one, such as an order's number."),
            .single("id", "ID", environment: .none, help: "The sender's own id: the same again is sent once."),
            .toggle("all", environment: .none, help: "For all jobs that wait for it, and not for one."),
            .single(
                "keep", "DURATION", .duration(.seconds(1) ... .days(366)), environment: .none, fallback: "720h",
                help: "How long it is kept."),
        ],
        examples: [
            Example("millrace signal payment-received '{\"amount\": 12}' --key order-7 --id evt-81", "told once")
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let name = parsed.string("name") ?? ""
        let payload =
            try parsed.string("payload").map { try invocation.json(at: $0, named: "the payload", most: 65_536) }
            ?? Array("null".utf8)
        let isNew = try await invocation.withSchema { connection in
            try await Queue.signal(
                name, key: parsed.string("key") ?? "", payload: payload, id: parsed.string("id"),
                toAll: parsed.isOn("all"), keep: parsed.duration("keep"), on: connection)
        }
        invocation.console.show(["name": .string(name), "sent": .bool(isNew)]) {
            invocation.console.print("\(DisplayWidth.harmless(name))  \(isNew ? "sent" : "was sent before")")
        }
        return .done
    }

    static let approvalsList = Command(
        ["approvals", "list"],
        summary: "List questions that jobs wait for, oldest first",
        flags: [
            .toggle("all", environment: .none, help: "Also those that were answered or are over, newest first."),
            .single("limit", "N", .integer(1...500), fallback: "50", help: "Show at most this many."),
        ],
        examples: [Example("millrace approvals list", "what waits for a person")]
    ) { invocation in
        let parsed = invocation.parsed
        let rows = try await invocation.withSchema { connection in
            try await Queue.approvals(
                onlyOpen: !parsed.isOn("all"), page: parsed.integer("limit") ?? 50, on: connection)
        }
        var table = Table(
            [
                Table.Column("id"), Table.Column("job", .trailing), Table.Column("asks"),
                Table.Column("request", shrinks: true), Table.Column("asked"), Table.Column("answer"),
            ], whenEmpty: parsed.isOn("all") ? "no questions" : "no open questions")
        for row in rows {
            let answer = row.approved.map { ($0 ? "yes" : "no") + (row.answeredBy.map { " by \($0)" } ?? "") }
            table.add([
                Table.Cell(row.id), Table.Cell("\(row.job)"), Table.Cell(DisplayWidth.harmless(row.step)),
                Table.Cell(DisplayWidth.harmless(String(decoding: row.request, as: UTF8.self))),
                Table.Cell(row.askedAt.formatted(.iso8601)), Table.Cell(DisplayWidth.harmless(answer ?? "open")),
            ])
        }
        invocation.console.list(
            "approvals",
            rows.map { row in
                [
                    "id": .string(row.id), "job": .int(Int(row.job)), "kind": JSONValue(row.kind),
                    "step": .string(row.step),
                    "request": .raw(String(decoding: row.request, as: UTF8.self)), "tenant": JSONValue(row.tenant),
                    "asked_at": JSONValue(row.askedAt), "due": row.due.map { JSONValue($0) } ?? .null,
                    "answered_at": row.answeredAt.map { JSONValue($0) } ?? .null,
                    "approved": row.approved.map { .bool($0) } ?? .null, "answered_by": JSONValue(row.answeredBy),
                    "comment": JSONValue(row.comment),
                ]
            }, table: table)
        return .done
    }

    static let approvalsAnswer = Command(
        ["approvals", "answer"],
        summary: "Answer a question that a job waits for",
        discussion: """
            The job goes on with the answer. An answer is given once: another one is refused with exit 5, and is written into the \
            audit with who gave it.
            """,
        arguments: [Argument("id", .one, .messageID, help: "the question's id")],
        flags: [
            .toggle("yes", environment: .none, help: "Approve."), .toggle("no", environment: .none, help: "Refuse."),
            .single("by", "NAME", environment: .none, help: "Who answers; the database's role if not given."),
            .single("comment", "TEXT", environment: .none, help: "Why."),
        ],
        examples: [
            Example(
                "millrace approvals answer 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e --yes --by ada --comment 'known customer'",
                "")
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let id = parsed.string("id") ?? ""
        guard parsed.isOn("yes") != parsed.isOn("no") else {
            throw Failure(.misused, "an answer is --yes or --no")
        }
        let isNew = try await invocation.withSchema { connection in
            try await Queue.answer(
                id, approved: parsed.isOn("yes"), by: parsed.string("by"), comment: parsed.string("comment"),
                on: connection)
        }
        let answer = parsed.isOn("yes") ? "yes" : "no"
        invocation.console.show(["id": .string(id), "approved": .bool(parsed.isOn("yes")), "changed": .bool(isNew)]) {
            invocation.console.print("\(id)  \(answer)\(isNew ? "" : ", as before")")
        }
        return .done
    }
}
