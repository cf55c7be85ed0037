import Listeners
import Postgres
import Templates

/// The forms of one job: other arguments for a dead one, and the signal that a waiting one needs.
enum JobForms {
    static let routes: [ConsolePageRoute] = [ConsolePageRoute(path: "/jobs/{id}/edit", make: edit)]

    /// What the form calls that all steps are done again.
    static let doneAgain = "do all again"

    private static func edit(_ context: PageContext) async throws -> ConsolePage {
        let id = try context.id()
        let job = try await context.json(
            """
            select jsonb_build_object('kind', j.kind, 'state', j.state, 'error', left(j.errors -> -1 ->> 'error', 500), 'args', jsonb_pretty(j.args),
                       'sealed', case when j.args ->> '$millrace' = 'sealed' then j.args ->> 'key' end, 'steps', exists (select from millrace.steps_shown($1)))
              from millrace.job_shown($1) j
            """, [.int8(id)])
        guard let state = job.text("state") else {
            throw ErrorAnswer.noJob(id)
        }
        var parts: [ConsolePart] = [
            .facts([
                ("Job", ConsoleCell("\(id)", href: PageAddress.to("/jobs/\(id)"))), ("Kind", .text(job.text("kind"))),
                ("State", .state(state)), ("Last error", .text(job.text("error"))),
            ])
        ]
        let args = job.text("args") ?? "null"
        if let reason = whyNot(id, state: state, sealed: job.text("sealed"), size: args.utf8.count, context) {
            parts.append(.paragraph(reason, tone: "warn"))
        } else {
            parts.append(editForm("\(id)", args, fresh: job.isTrue("steps") ? "keep" : nil))
        }
        return ConsolePage(title: "Edit job \(id), then retry", entry: "Jobs", parts: parts)
    }

    /// Why there is no form; nil: there is one.
    private static func whyNot(
        _ id: Int64, state: String, sealed: String?, size: Int, _ context: PageContext
    ) -> String? {
        if !context.mayAct(.admin) { return "Only an admin may change the arguments of a job." }
        if state != "dead", state != "cancelled" {
            return "Job \(id) is \(state). Only a dead or cancelled job can be given other arguments."
        }
        if let sealed {
            return
                "The arguments are sealed with the key \(sealed), which the console does not have. Where MILLRACE_ENCRYPTION_KEY has it, millrace jobs edit \(id) takes new ones and seals them."
        }
        if size > ConsoleAction.largestArguments {
            return
                "The arguments take \(Figures.bytes(size)), more than a form can take. From a file: millrace jobs edit \(id) @args.json"
        }
        return nil
    }

    private static func editForm(_ id: String, _ args: String, fresh: String?) -> ConsolePart {
        var fields = [
            ConsoleField(name: "id", value: id, kind: .hidden),
            ConsoleField(
                name: "args", label: "Arguments (JSON)", value: args, kind: .json,
                hint: args.contains("[redacted]")
                    ? "Where it says [redacted], a value is hidden. Leave that word, and the value stays." : nil),
        ]
        if let fresh {
            fields.append(
                ConsoleField(
                    name: "fresh", label: "Steps on record", value: fresh, kind: .choice(["keep", doneAgain]),
                    hint: "If kept, they stay as the old arguments made them."))
        }
        return .forms([
            ConsoleForm(
                id: "edit", action: PageAddress.to("/act/job.edit"), button: "Change and retry", fields: fields,
                isMain: true, isWide: true)
        ])
    }

    static func editAgain(_ form: [String: String], _ wrong: ErrorAnswer?, _ context: PageContext) async -> ConsolePage
    {
        let id = form["id"] ?? ""
        return refused(
            wrong, title: "Edit job \(id), then retry",
            [editForm(id, form["args"] ?? "", fresh: form["fresh"]), back(id)])
    }

    /// - Parameter wait: what `why` says that the job waits for.
    static func signal(_ id: Int64, _ wait: TemplateValue) -> ConsoleForm {
        signalForm(
            "\(id)", step: wait.text("step") ?? "", name: wait.text("name") ?? "", payload: "",
            key: wait.text("key"))
    }

    private static func signalForm(
        _ id: String, step: String, name: String, payload: String, key: String? = nil
    ) -> ConsoleForm {
        let key = key.flatMap { $0.isEmpty ? nil : $0 }
        return ConsoleForm(
            id: "signal", action: PageAddress.to("/act/job.signal"), button: "Send the signal",
            fields: [
                ConsoleField(name: "id", value: id, kind: .hidden),
                ConsoleField(name: "step", value: step, kind: .hidden),
                ConsoleField(
                    name: "name", label: "Signal", value: name,
                    hint: key.map { "With the key \($0). Only this job hears it." } ?? "Only this job hears it.",
                    isNeeded: true),
                ConsoleField(
                    name: "payload", label: "Payload (JSON)", value: payload, kind: .json,
                    hint: "What the job is told, such as {\"amount\": 7}. Empty is null."),
            ], isWide: true)
    }

    static func signalAgain(
        _ form: [String: String], _ wrong: ErrorAnswer?, _ context: PageContext
    ) async -> ConsolePage {
        let id = form["id"] ?? ""
        return refused(
            wrong, title: "Send a signal to job \(id)",
            [
                .forms([
                    signalForm(
                        id, step: form["step"] ?? "", name: form["name"] ?? "", payload: form["payload"] ?? "")
                ]), back(id),
            ])
    }

    private static func back(_ id: String) -> ConsolePart {
        .list([ConsoleCell("Back to job \(id)", href: PageAddress.to("/jobs/\(PageAddress.encoded(id))"))])
    }

    private static func refused(_ wrong: ErrorAnswer?, title: String, _ parts: [ConsolePart]) -> ConsolePage {
        ConsolePage(
            title: title, entry: "Jobs", parts: ConsolePart.sentences(of: wrong) + parts, status: wrong?.status ?? 200)
    }
}

extension ConsolePart {
    /// What is wrong, and what to do about it.
    static func sentences(of refusal: ErrorAnswer?) -> [ConsolePart] {
        guard let refusal else { return [] }
        return [.paragraph(refusal.message, tone: "bad")] + (refusal.hint.map { [.paragraph($0)] } ?? [])
    }
}
