import JSON
import Listeners
import Postgres

/// Actions of forms in which somebody writes more than a word.
extension ConsoleAction {
    /// The bytes of a form, as a browser encodes it: a text takes up to three times its own.
    static let largestForm = 262_144
    /// The bytes of arguments that a form shows.
    static let largestArguments = 65_536

    static let ofForms: [ConsoleAction] = [
        ConsoleAction(
            "job.edit",
            "select to_jsonb(case when millrace.retry_with($1, $2, $3) then $1::text end)", role: .admin,
            goesTo: { PageAddress.to("/jobs/\($0)", [("said", "done")]) }, again: JobForms.editAgain
        ) { form in
            [
                .int8(try id(form)), .json(try json(form, "args", of: "the arguments")),
                .bool(form["fresh"] == JobForms.doneAgain),
            ]
        },
        ConsoleAction(
            "job.signal", "select to_jsonb(millrace.signal_waiting($1, $2, $3, nullif($4, '')))",
            again: JobForms.signalAgain
        ) { form in
            let isEmpty = form["payload"]?.allSatisfy(\.isWhitespace) ?? true
            return [
                .int8(try id(form)), .text(try text(form, "name")),
                .json(isEmpty ? "null" : try json(form, "payload", of: "the payload")), .text(form["step"] ?? ""),
            ]
        },
        ConsoleAction(
            "schedule.save",
            "select to_jsonb(case when millrace.schedule_save($1, $2, $3, $4, $5, nullif($6, ''), nullif($7, '')::timestamptz) is not null then $1::text end)",
            role: .admin,
            goesTo: { PageAddress.to("/schedule", [("name", $0), ("said", "done")]) }, again: ScheduleForm.again
        ) { form in
            _ = try ScheduleForm.Plan(form)
            let args = form["args"] == nil ? nil : try json(form, "args", of: "the arguments")
            return [
                .text(try text(form, "name")), .text(try text(form, "expression")), .text(try text(form, "kind")),
                .json(args), .text(form["zone"] ?? "UTC"), .text(form["queue"] ?? ""), .text(form["was"] ?? ""),
            ]
        },
        ConsoleAction(
            "schedule.remove", "select to_jsonb(millrace.schedule_remove($1))", role: .admin,
            goesTo: { _ in PageAddress.to("/schedules", [("said", "done")]) },
            question: {
                (
                    "Remove the schedule \($0["name"] ?? "")?",
                    "It will not fire again, and the record of its past times is deleted, too. Its jobs stay. This cannot be undone.",
                    "Remove the schedule"
                )
            }
        ) { [.text(try text($0, "name"))] },
        ConsoleAction("search.save", "select to_jsonb(millrace.console_search_save(btrim($1), $2))") {
            [.text(try text($0, "name")), .json(try json($0, "filter", of: "the search"))]
        },
        ConsoleAction("search.remove", "select to_jsonb(millrace.console_search_remove($1))") {
            [.text(try text($0, "name"))]
        },
    ]

    /// JSON as somebody typed it; a refusal says where it is none.
    private static func json(_ form: [String: String], _ name: String, of what: String) throws -> String {
        let text = try text(form, name)
        var reader = JSONReader(Array(text.utf8), rules: JSONReader.Rules(allowsRepeatedKeys: false))
        do throws(JSONProblem) {
            _ = try reader.document()
        } catch {
            throw ErrorAnswer(.invalid, "\(what) cannot be read as JSON: \(error.sentence)", field: name)
        }
        return text
    }
}
