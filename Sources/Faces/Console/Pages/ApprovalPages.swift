import Listeners
import Postgres
import Templates

/// Questions of jobs to people: what is open, who was asked, and how it was answered.
enum ApprovalPages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/approvals", make: list), ConsolePageRoute(path: "/approvals/{id}", make: one),
    ]

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        let found = try await context.json(
            """
            select jsonb_build_object('open', (select coalesce(jsonb_agg(a), '[]') from millrace.approvals_shown(true, 100) a),
                'others', (select coalesce(jsonb_agg(a), '[]') from millrace.approvals_shown(false, 50) a))
            """)
        let question: [RowColumn] = [
            .own("Question") { row in
                ConsoleCell(
                    row.text("step") ?? "", href: PageAddress.to("/approvals/\(row.text("id") ?? "")"))
            },
            .own("Job") { ConsoleCell($0.text("job") ?? "", href: $0.int("job").map(PageAddress.job)) },
            .text("Kind", "kind"), .text("Tenant", "tenant"), .time("Asked", "asked_at"),
        ]
        return ConsolePage(
            title: "Approvals", entry: "Approvals",
            parts: [
                .heading("Open"),
                .table(
                    found.list("open"),
                    question + [
                        .own("People") { .text(people($0)) }, .count("Reminders", "reminded"),
                        .time("Next reminder", "remind_at"), .time("Others are asked", "escalate_at"),
                        .time("Answer by", "due"),
                    ], empty: "No job waits for a person."),
                .heading("The latest that are no longer waited for"),
                .table(
                    found.list("others"),
                    question + [
                        .own("State") { ConsoleCell(stateWord($0)) }, .text("By", "answered_by"),
                        .time("Answered", "answered_at"), .text("Comment", "comment"),
                    ], empty: "None has been answered yet."),
            ])
    }

    private static func one(_ context: PageContext) async throws -> ConsolePage {
        let id = try context.uuid()
        let found = try await context.json("select millrace.approval_shown($1::text::uuid)", [.text(id)])
        guard let step = found.text("step") else {
            throw ErrorAnswer(
                .notFound, "there is no approval \(id)",
                hint: "It is deleted with its job, or when the job starts over from its first step.")
        }
        var parts: [ConsolePart] = [
            .facts([
                ("Question", ConsoleCell(step)), ("State", ConsoleCell(stateWord(found))),
                ("Job", ConsoleCell(found.text("job") ?? "", href: found.int("job").map(PageAddress.job))),
                ("Kind", .text(found.text("kind"))), ("Tenant", .text(found.text("tenant"))),
                ("Asked", .time(found.text("asked_at"))), ("Answer by", .time(found.text("due"))),
                ("Reminders", .count(found.int("reminded"))), ("Next reminder", .time(found.text("remind_at"))),
                ("Others are asked", .time(found.text("escalate_at"))),
                ("Others were asked", .time(found.text("escalated_at"))),
                ("Answered by", .text(found.text("answered_by"))), ("Answered", .time(found.text("answered_at"))),
                ("Comment", .text(found.text("comment"))),
            ])
        ]
        if context.mayAct(), found.text("state") == "open" {
            parts.append(
                .forms([
                    ConsoleForm(
                        id: "answer", action: PageAddress.to("/act/approval.answer"), button: "Yes",
                        fields: [
                            ConsoleField(name: "id", value: id, kind: .hidden),
                            ConsoleField(name: "comment", label: "Comment", kind: .lines),
                        ], isMain: true,
                        choice: .init(name: "approved", value: "true", other: (value: "false", button: "No")))
                ]))
        }
        parts.append(.code(title: "What it is about", text: (found["request"] ?? .null).pretty))
        parts += [
            .heading("Who was asked"),
            .table(
                found.list("people"),
                [
                    .text("Person", "person"), .text("How", "how"), .time("Since", "at"),
                    .state("Last notice", "notice"),
                ], empty: "Nobody was told: see this page, or millrace approvals."),
        ]
        return ConsolePage(title: "Approval: \(step)", entry: "Approvals", parts: parts)
    }

    private static func people(_ row: TemplateValue) -> String {
        row.list("people").compactMap { $0.text("person") }.joined(separator: ", ")
    }

    private static func stateWord(_ row: TemplateValue) -> String {
        switch row.text("state") {
        case "answered": row.isTrue("approved") ? "yes" : "no"
        case "late": "nobody answered in time"
        case "over": "the job has ended"
        default: "open"
        }
    }
}
