import FoundationEssentials
import Listeners
import Postgres
import Telemetry

/// Everything that a button of the console does: one statement each. The database decides whether the visitor's role may.
struct ConsoleAction: Sendable {
    let name: String
    let role: ConsoleRole
    let sql: SQL
    let parameters: @Sendable ([String: String]) throws -> [Parameter]
    /// Where the visitor is sent when the answer names it: the id of a new operation or job.
    var goesTo: (@Sendable (String) -> String)?
    /// What cannot be taken back is asked once more, on a page of its own where the page before has not done so: the question, and the button.
    var question: (@Sendable ([String: String]) -> (title: String, said: String, button: String))?
    /// The form again, with what was sent: where that is refused, with the sentence; without one, to look at before it is done.
    var again: (@Sendable ([String: String], ErrorAnswer?, PageContext) async -> ConsolePage)?

    static let all = ofOneObject + ofForms

    private static let ofOneObject: [ConsoleAction] = [
        ConsoleAction("job.retry", "select to_jsonb(millrace.retry($1))") { [.int8(try id($0))] },
        ConsoleAction("job.cancel", "select to_jsonb(millrace.cancel($1))") { [.int8(try id($0))] },
        ConsoleAction(
            "job.delete", "select to_jsonb(millrace.job_delete($1))", role: .admin,
            goesTo: { _ in PageAddress.to("/jobs", [("state", "dead"), ("said", "done")]) },
            question: {
                (
                    "Delete job \($0["id"] ?? "")?",
                    "It is deleted for good, with its arguments, its result and its history. This cannot be undone.",
                    "Delete job \($0["id"] ?? "") for good"
                )
            }
        ) { [.int8(try id($0))] },
        ConsoleAction(
            "job.fork", "select to_jsonb(millrace.fork($1, nullif($2, ''))::text)",
            goesTo: { PageAddress.to("/jobs/\($0)") }
        ) { [.int8(try id($0)), .text($0["step"] ?? "")] },
        ConsoleAction("job.reschedule", "select to_jsonb(millrace.reschedule($1, $2))") {
            [.int8(try id($0)), .timestamp(try moment($0, "run_at"))]
        },
        ConsoleAction("job.priority", "select to_jsonb(millrace.job_priority($1, $2))") {
            [.int8(try id($0)), .int4(try number($0, "priority"))]
        },
        ConsoleAction(
            "approval.answer",
            "select to_jsonb(millrace.approval_answer($1::text::uuid, $2::text::boolean, null, nullif(btrim($3), '')))"
        ) { form in
            [.text(try text(form, "id")), .text(try text(form, "approved")), .text(form["comment"] ?? "")]
        },
        ConsoleAction("queue.pause", "select to_jsonb(millrace.pause($1))") { [.text(try text($0, "queue"))] },
        ConsoleAction("queue.resume", "select to_jsonb(millrace.resume($1))") { [.text(try text($0, "queue"))] },
        ConsoleAction(
            "queue.limit",
            "select to_jsonb(millrace.limit_set('queue', $1, jsonb_build_object('concurrency', $2::int)))"
        ) { form in
            [
                .text(try text(form, "queue")),
                .int4((form["concurrency"] ?? "").isEmpty ? nil : try number(form, "concurrency")),
            ]
        },
        ConsoleAction("schedule.pause", "select to_jsonb(millrace.schedule_pause($1))") {
            [.text(try text($0, "name"))]
        },
        ConsoleAction("schedule.resume", "select to_jsonb(millrace.schedule_resume($1))") {
            [.text(try text($0, "name"))]
        },
        ConsoleAction(
            "schedule.run", "select to_jsonb(millrace.schedule_run($1)::text)",
            goesTo: { PageAddress.to("/jobs/\($0)") }
        ) { [.text(try text($0, "name"))] },
        ConsoleAction("provider.force", "select to_jsonb(millrace.provider_force($1, $2, $3, $4::text::interval))") {
            form in
            [
                .text(try text(form, "provider")), .text(try text(form, "state")), .text(try text(form, "reason")),
                .text(try text(form, "hold")),
            ]
        },
        ConsoleAction("mail.resolve", "select to_jsonb(millrace.mail_resolve($1::text::uuid, $2))") {
            [.text(try text($0, "id")), .text(try text($0, "verdict"))]
        },
        ConsoleAction("mail.cancel", "select to_jsonb(millrace.mail_cancel($1::text::uuid))") {
            [.text(try text($0, "id"))]
        },
        ConsoleAction("document.retry", "select to_jsonb(millrace.document_retry($1::text::uuid))") {
            [.text(try text($0, "id"))]
        },
        ConsoleAction(
            "alarm.resolve", "select to_jsonb(millrace.check_in_resolve($1::text::uuid, $2))",
            question: { _ in
                (
                    "Resolve this alarm?", "Nobody else is told, and its contacts hear that it is over.",
                    "Resolve the alarm"
                )
            }
        ) { [.text(try text($0, "id")), .text(try text($0, "reason"))] },
        ConsoleAction("webhook.enable", "select to_jsonb(millrace.webhook_enable($1::text::uuid))") {
            [.text(try text($0, "id"))]
        },
        ConsoleAction(
            "operation.start", "select to_jsonb(millrace.operation_start($1, $2, $3, $4, $5)::text)",
            goesTo: { PageAddress.to("/operations/\($0)") }
        ) { form in
            var args: [String: String] = [:]
            if let text = form["run_at"] { args["run_at"] = text.utf8.count == 16 ? text + ":00Z" : text }
            // A number, not a text, in JSON.
            let json =
                (form["priority"] ?? "").isEmpty
                ? JSONLine.object(args) : "{\"priority\": \(try number(form, "priority"))}"
            return [
                .text(try text(form, "action")), .json(try text(form, "filter")), .json(json),
                .int4((form["pace"] ?? "").isEmpty ? nil : try number(form, "pace")), .text(form["key"]),
            ]
        },
        ConsoleAction("operation.pause", "select to_jsonb(millrace.operation_pause($1))") { [.int8(try id($0))] },
        ConsoleAction("operation.resume", "select to_jsonb(millrace.operation_resume($1))") { [.int8(try id($0))] },
        ConsoleAction("operation.stop", "select to_jsonb(millrace.operation_stop($1))") { [.int8(try id($0))] },
        ConsoleAction("operation.undo", "select to_jsonb(millrace.operation_undo($1))") { [.int8(try id($0))] },
    ]

    init(
        _ name: String, _ sql: SQL, role: ConsoleRole = .operator, goesTo: (@Sendable (String) -> String)? = nil,
        question: (@Sendable ([String: String]) -> (title: String, said: String, button: String))? = nil,
        again: (@Sendable ([String: String], ErrorAnswer?, PageContext) async -> ConsolePage)? = nil,
        _ parameters: @escaping @Sendable ([String: String]) throws -> [Parameter]
    ) {
        self.name = name
        self.role = role
        self.sql = sql
        self.parameters = parameters
        self.goesTo = goesTo
        self.question = question
        self.again = again
    }

    static func text(_ form: [String: String], _ name: String) throws -> String {
        guard let text = form[name], !text.isEmpty else {
            throw ErrorAnswer(.invalid, "\(name) is missing", field: name)
        }
        return text
    }

    static func id(_ form: [String: String]) throws -> Int64 {
        guard let id = Int64(try text(form, "id")) else {
            throw ErrorAnswer(.invalid, "id is not a number", field: "id")
        }
        return id
    }

    private static func number(_ form: [String: String], _ name: String) throws -> Int32 {
        guard let number = Int32(try text(form, name)) else {
            throw ErrorAnswer(.invalid, "\(name) is not a number", field: name)
        }
        return number
    }

    /// As a browser's field sends it, without a zone: UTC.
    private static func moment(_ form: [String: String], _ name: String) throws -> Date {
        let text = try text(form, name)
        guard let date = Figures.date(text.utf8.count == 16 ? text + ":00" : text) else {
            throw ErrorAnswer(.invalid, "\(name) is not a time such as 2026-11-27T07:30", field: name)
        }
        return date
    }
}

/// What a page says after an action; the address names only the word.
enum ActionWords {
    static let said = [
        "done": "Done.", "nothing": "Nothing to do: this is already done, or the job has moved on.",
    ]
}

extension ConsoleService {
    func act(_ request: Request) async throws -> Response {
        let visitor: Visitor
        switch await admit(request) {
        case .failure(let refused): return refused.response
        case .success(let found): visitor = found
        }
        let form: [String: String]
        do {
            form = try await Self.form(of: request)
        } catch {
            return errorPage(refusal(of: error), for: visitor)
        }
        if let refusal = options.access.refusal(of: form, from: request, by: visitor) {
            return errorPage(refusal, for: visitor)
        }
        guard let action = ConsoleAction.all.first(where: { $0.name == request.parameter("action") }) else {
            return errorPage(ErrorAnswer(.notFound, "there is no such action"), for: visitor)
        }
        if let question = action.question, form["sure"] != "yes", visitor.role >= action.role {
            return ask(question(form), action, form, visitor)
        }
        let again = visitor.role >= action.role ? action.again : nil
        if let again, form["press"] == "preview" {
            return redrawn(await again(form, nil, context(request, visitor)), form, visitor)
        }
        do {
            let answer = try await ConsoleReader(pool: pool, roles: roles, visitor: visitor)
                .json(action.sql, try action.parameters(form))
            await live.acted()
            log.info(
                "an action of the console",
                [("action", action.name), ("user", visitor.name), ("role", visitor.role.rawValue)])
            if let target = action.goesTo, let name = answer.plainText { return Self.redirect(to: target(name)) }
            let said = answer.plainText == "false" ? "nothing" : "done"
            let back = Self.ownPath(form["back"])
            return Self.redirect(to: back + (back.contains("?") ? "&" : "?") + "said=\(said)")
        } catch {
            let refusal = refusal(of: error)
            guard let again, [400, 409, 413].contains(refusal.status) else { return errorPage(refusal, for: visitor) }
            // Nobody loses what they wrote.
            return redrawn(await again(form, refusal, context(request, visitor)), form, visitor)
        }
    }

    /// A search for mail goes to a page whose address does not have its words.
    func findMail(_ request: Request) async throws -> Response {
        let visitor: Visitor
        switch await admit(request) {
        case .failure(let refused): return refused.response
        case .success(let found): visitor = found
        }
        do {
            let form = try await Self.form(of: request)
            if let refusal = options.access.refusal(of: form, from: request, by: visitor) { throw refusal }
            guard visitor.role >= .operator else {
                throw ErrorAnswer(
                    .permission, "a viewer may not search for mail", hint: "ask an operator, or ask for that role")
            }
            return Self.redirect(to: MailPages.address(finding: form, context(request, visitor)))
        } catch {
            return errorPage(refusal(of: error), for: visitor)
        }
    }

    private func redrawn(_ page: ConsolePage, _ form: [String: String], _ visitor: Visitor) -> Response {
        layout.response(
            page, for: visitor, token: options.access.formToken(of: visitor), at: Self.ownPath(form["back"]))
    }

    /// The same form again, with everything that was sent, on a page of its own.
    private func ask(
        _ question: (title: String, said: String, button: String), _ action: ConsoleAction, _ form: [String: String],
        _ visitor: Visitor
    ) -> Response {
        let back = Self.ownPath(form["back"])
        let sent = form.filter { !["form_token", "back", "sure"].contains($0.key) }.sorted { $0.key < $1.key }
        let page = ConsolePage(
            title: question.title, entry: "",
            parts: [
                .paragraph(question.said, tone: "warn"),
                .forms([
                    ConsoleForm(
                        id: "sure", action: PageAddress.to("/act/\(action.name)"), button: question.button,
                        fields: sent.map { ConsoleField(name: $0.key, value: $0.value, kind: .hidden) }
                            + [ConsoleField(name: "sure", value: "yes", kind: .hidden)])
                ]), .list([ConsoleCell("No, go back", href: back)]),
            ])
        return layout.response(page, for: visitor, token: options.access.formToken(of: visitor), at: back)
    }
}
