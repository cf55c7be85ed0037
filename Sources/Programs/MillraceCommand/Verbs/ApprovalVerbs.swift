import FoundationEssentials
import JSON
import MillraceJobs
import MillraceQueues
import Postgres
import Signatures

/// Questions of jobs to people.
extension Command {
    static let approvalsList = Command(
        ["approvals", "list"],
        summary: "List questions that jobs wait for, oldest first",
        discussion: """
            Beside a question stand the people who were asked, with + those who were asked because nobody had answered, and when \
            somebody is reminded or asked next. The JSON has the fate of each one's last notice.
            """,
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
                Table.Column("request", shrinks: true), Table.Column("asked"), Table.Column("people", shrinks: true),
                Table.Column("next"), Table.Column("answer"),
            ], whenEmpty: parsed.isOn("all") ? "no questions" : "no open questions")
        for row in rows {
            let answer = row.approved.map { ($0 ? "yes" : "no") + (row.answeredBy.map { " by \($0)" } ?? "") }
            table.add([
                Table.Cell(row.id), Table.Cell("\(row.job)"), Table.Cell(DisplayWidth.harmless(row.step)),
                Table.Cell(DisplayWidth.harmless(String(decoding: row.request, as: UTF8.self))),
                Table.Cell(row.askedAt.formatted(.iso8601)), Table.Cell(DisplayWidth.harmless(row.askedPeople)),
                Table.Cell(row.next), Table.Cell(DisplayWidth.harmless(answer ?? "open")),
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
                    "people": .raw(String(decoding: row.people, as: UTF8.self)), "reminded": .int(row.reminded),
                    "remind_at": row.nextReminder.map { JSONValue($0) } ?? .null,
                    "escalate_at": row.escalates.map { JSONValue($0) } ?? .null,
                    "escalated_at": row.escalatedAt.map { JSONValue($0) } ?? .null,
                ]
            }, table: table)
        return .done
    }

    static let approvalsAnswer = Command(
        ["approvals", "answer"],
        summary: "Answer a question that a job waits for",
        discussion: """
            The job goes on with the answer. An answer is given once: another one is refused with exit 4, and is written into the \
            audit with who gave it.
            """,
        arguments: [Argument("id", .one, .uuid, help: "the question's id")],
        flags: [
            .toggle("yes", environment: .none, help: "Approve."), .toggle("no", environment: .none, help: "Refuse."),
            .single("by", "NAME", environment: .none, help: "Who answers; you@host if not given."),
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

    static let approvalsLink = Command(
        ["approvals", "link"],
        summary: "Make a link with which a person sees and answers a question",
        discussion: """
            The link is this person's own: the answer is theirs, so send it to nobody else. It opens a plain page that any worker which \
            listens serves below MILLRACE_PUBLIC_URL, and takes an answer while the question is open. It is signed with \
            MILLRACE_SECRET, which has to be the workers'.
            """,
        arguments: [Argument("id", .one, .uuid, help: "the question's id")],
        flags: [.single("for", "PERSON", environment: .none, help: "Whose link it is. Needed.")],
        examples: [
            Example("millrace approvals link 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e --for ada", "ada's link")
        ]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        guard let person = invocation.parsed.string("for") else {
            throw Failure(.misused, "whose link is it?", hint: "Give --for PERSON.")
        }
        guard let links = invocation.settings.links else {
            throw Failure(
                .misused, "links cannot be signed here",
                hint: "Set MILLRACE_PUBLIC_URL and MILLRACE_SECRET as the workers have them.")
        }
        let ref = try await invocation.withSchema { connection in
            try await Queue.approvalLink(id, person: person, on: connection)
        }
        guard let link = links.approval(id, ref: ref) else { throw Failure(.failed, "the link cannot be made") }
        invocation.console.show(["id": .string(id), "person": .string(person), "link": .string(link)]) {
            invocation.console.print(link)
        }
        return .done
    }
}

extension ApprovalRow {
    fileprivate var askedPeople: String {
        let people = (try? JSONValue.read(people))?.items ?? []
        return people.map { ($0["how"]?.text == "escalated" ? "+" : "") + ($0["person"]?.text ?? "") }
            .joined(separator: ", ")
    }

    fileprivate var next: String {
        [
            nextReminder.map { "reminder \($0.formatted(.iso8601))" },
            escalates.map { "others \($0.formatted(.iso8601))" },
        ]
        .compactMap(\.self).joined(separator: ", ")
    }
}
