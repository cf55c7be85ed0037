import FoundationEssentials
import Listeners
import Postgres
import Templates

/// Bulk actions: a look at what they reach, their progress, their undoing; and the audit.
enum OperationPages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/operations", make: list), ConsolePageRoute(path: "/operations/new", make: new),
        ConsolePageRoute(path: "/operations/{id}", make: one), ConsolePageRoute(path: "/audit", make: audit),
    ]

    static let files: [ConsoleFileRoute] = [ConsoleFileRoute(path: "/audit/export", make: export)]

    /// The names of a search in the address, and in an operation's filter.
    private static let names = [
        "state": "state", "queue": "queue", "kind": "kind", "tag": "tag", "tenant": "tenant", "unique": "unique",
        "limit": "limit_key", "error": "error", "since": "since", "until": "until", "group": "group", "field": "field",
        "value": "value",
    ]

    private static let actions: [String: [String]] = [
        "ready": ["cancel", "reschedule", "priority"], "scheduled": ["cancel", "retry", "reschedule", "priority"],
        "retrying": ["cancel", "retry", "reschedule"], "blocked": ["cancel", "reschedule"], "running": ["cancel"],
        "succeeded": ["delete"], "cancelled": ["retry", "delete"], "dead": ["retry", "retry_fresh", "delete"],
    ]

    /// Below a search: act on everything that it finds.
    static func start(filter: [(String, String?)], state: String, mayDelete: Bool) -> [ConsolePart] {
        let choices = (actions[state] ?? []).filter { $0 != "delete" || mayDelete }
        guard !choices.isEmpty else { return [] }
        let hidden = filter.compactMap { name, value -> ConsoleField? in
            guard name != "state", let value else { return nil }
            return ConsoleField(name: name, value: value, kind: .hidden)
        }
        return [
            .heading("Act on everything this search finds"),
            .forms([
                ConsoleForm(
                    id: "bulk", action: PageAddress.to("/operations/new"), button: "See what it would affect",
                    fields: hidden + [
                        ConsoleField(name: "state", value: state, kind: .hidden),
                        ConsoleField(name: "action", label: "Action", value: choices[0], kind: .choice(choices)),
                    ], isSearch: true)
            ]),
        ]
    }

    /// Below a list: act on the jobs that are selected in it.
    static func picking(state: String, mayDelete: Bool) -> [ConsolePart] {
        let choices = (actions[state] ?? []).filter { $0 != "delete" || mayDelete }
        guard !choices.isEmpty else { return [] }
        return [
            .forms([
                ConsoleForm(
                    id: "pick", action: PageAddress.to("/operations/new"), button: "Act on the selected jobs",
                    fields: [
                        ConsoleField(name: "picked", value: state, kind: .hidden),
                        ConsoleField(
                            name: "action", label: "With the selected jobs", value: choices[0], kind: .choice(choices)),
                    ], isSearch: true)
            ])
        ]
    }

    static func preview(action: String, filter: [(String, String)], button: String) -> ConsoleForm {
        ConsoleForm(
            id: "preview", action: PageAddress.to("/operations/new"), button: button,
            fields: filter.map { ConsoleField(name: $0.0, value: $0.1, kind: .hidden) }
                + [ConsoleField(name: "action", value: action, kind: .hidden)], isSearch: true)
    }

    private static func filter(_ context: PageContext) -> [String: String] {
        var filter: [String: String] = [:]
        for (name, key) in names {
            guard var value = context.query(name) else { continue }
            if name == "since" || name == "until", !value.hasSuffix("Z"), value.utf8.count == 16 { value += ":00Z" }
            filter[key] = value
        }
        return filter
    }

    private static func new(_ context: PageContext) async throws -> ConsolePage {
        guard let action = context.query("action") else {
            throw ErrorAnswer(.invalid, "which action?", field: "action")
        }
        let picked = context.request.query.filter { $0.name == "id" }.compactMap { Int64($0.value) }
        guard !picked.isEmpty || context.query("picked") == nil else {
            throw ErrorAnswer(
                .invalid, "no job is selected", hint: "go back, and select jobs with the boxes beside their numbers")
        }
        let filter = picked.isEmpty ? filter(context) : [:]
        let needs = ["reschedule": "run_at", "priority": "priority"][action]
        let json =
            picked.isEmpty
            ? JSONLine.object(filter) : "{\"ids\":[\(picked.map(String.init).joined(separator: ","))]}"
        let found = try await reached(by: action, json, context)
        let jobs = found.int("jobs")
        let isExact = found.isTrue("is_exact")
        let count = jobs.map {
            $0 == 0 && !isExact
                ? "an unknown number of jobs"
                : "\(isExact ? "" : "at least ")\(Figures.count($0)) \($0 == 1 ? "job" : "jobs")"
        }
        var fields: [ConsoleField] = [
            ConsoleField(name: "action", value: action, kind: .hidden),
            ConsoleField(name: "filter", value: json, kind: .hidden),
            ConsoleField(name: "key", value: "console-\(UInt64.random(in: 0 ... .max))", kind: .hidden),
        ]
        switch needs {
        case "run_at"?:
            fields.append(ConsoleField(name: "run_at", label: "New time (UTC)", kind: .moment, isNeeded: true))
        case "priority"?:
            fields.append(
                ConsoleField(name: "priority", label: "Priority (0 first, 9 last)", kind: .number, isNeeded: true))
        default: break
        }
        fields.append(
            ConsoleField(
                name: "pace", label: "Jobs per second, at most", kind: .number,
                hint: "Empty: as fast as possible."))
        var parts: [ConsolePart] = [
            .paragraph(
                count.map { "\(action) would reach \($0)." }
                    ?? "The jobs could not be counted in time. The action can be started all the same: it shows how far it is, and can be undone.",
                tone: count == nil ? "warn" : nil),
            picked.isEmpty
                ? .facts(filter.sorted { $0.key < $1.key }.map { ($0.key, ConsoleCell($0.value)) })
                : .facts([("Selected jobs", ConsoleCell(picked.map(String.init).joined(separator: ", ")))]),
        ]
        if jobs != 0 || !isExact, context.mayAct() {
            parts.append(
                .forms([
                    ConsoleForm(
                        id: "start", action: PageAddress.to("/act/operation.start"),
                        button: "Start: \(action) \(count ?? "all jobs that fit")", fields: fields)
                ]))
        }
        guard count != nil else {
            return ConsolePage(title: "What would be affected", entry: "Operations", parts: parts)
        }
        parts += [
            .heading("Some of them"),
            .table(
                found.list("sample"),
                [
                    .own("Job") { ConsoleCell($0.text("id") ?? "", href: $0.int("id").map(PageAddress.job)) },
                    .text("Kind", "kind"), .text("Queue", "queue"), .state("State", "state"), .time("Due", "run_at"),
                    .text("Error", "error"),
                ], empty: "No job matches."),
        ]
        return ConsolePage(title: "What would be affected", entry: "Operations", parts: parts)
    }

    /// What the database says; nothing when it could not count in time.
    private static func reached(by action: String, _ filter: String, _ context: PageContext) async throws
        -> TemplateValue
    {
        do {
            return try await context.json(
                """
                select to_jsonb(p) from millrace.operation_preview($1, $2, case $1 when 'reschedule' then '{"run_at": "2100-01-01T00:00:00Z"}'::jsonb when 'priority' then '{"priority": 0}' else '{}' end, 10) p
                """, [.text(action), .json(filter)])
        } catch let error as PostgresError where error.isOfOneStatement {
            return .null
        }
    }

    private static let columns: [RowColumn] = [
        .own("Operation") { row in
            ConsoleCell(
                "\(row.text("id") ?? ""): \(row.text("action") ?? "")",
                href: PageAddress.to("/operations/\(row.text("id") ?? "")"))
        }, .state("State", "state"), .text("By", "said_by"), .text("Role", "who"), .text("Login", "login"),
        .count("To reach", "jobs"),
        .count("Done", "done") { "operation.\($0.text("id") ?? "").done" }, .count("Refused", "refused"),
        .count("Undone", "undone"), .count("Moved on", "past"),
        .time("Started", "started_at"), .time("Ended", "ended_at"),
    ]

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        let rows = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(o)), '[]') from millrace.operation_list($1, 50) o",
            [.int8(try context.number("after"))]
        ).elements
        let next = rows.count < 50 ? nil : PageAddress.to("/operations", [("after", rows.last?.text("id"))])
        return ConsolePage(
            title: "Operations", entry: "Operations",
            parts: [
                .table(
                    rows, columns,
                    empty:
                        "There has been no bulk action yet. Search for jobs, then act on everything the search finds.",
                    next: next)
            ], live: "fleet")
    }

    private static func one(_ context: PageContext) async throws -> ConsolePage {
        let id = try context.id()
        let which = context.query("which")
        let found = try await context.json(
            """
            select jsonb_build_object('operation', (select to_jsonb(o) from millrace.operation($1) o),
                'items', (select coalesce(jsonb_agg(to_jsonb(i)), '[]') from millrace.operation_items($1, $2, $3, 100) i))
            """, [.int8(id), .text(which), .int8(try context.number("after"))])
        guard let operation = found["operation"], let state = operation.text("state") else {
            throw ErrorAnswer(.notFound, "there is no operation \(id)")
        }
        let items = found.list("items")
        let next =
            items.count < 100
            ? nil : PageAddress.to("/operations/\(id)", [("which", which), ("after", items.last?.text("job"))])
        var facts: [(String, ConsoleCell)] = [
            ("Action", .text(operation.text("action"))), ("State", .state(state)),
            ("By", .text(operation.text("said_by"))),
            ("Role", .text(operation.text("who"))), ("Login", .text(operation.text("login"))),
            ("To reach", .count(operation.int("jobs"))),
            ("Looked at", .count(operation.int("looked"))), ("Done", .count(operation.int("done"))),
            ("Nothing to do", .count(operation.int("nothing"))), ("Refused", .count(operation.int("refused"))),
            (
                "Pace",
                operation.text("pace").map { ConsoleCell("\($0) a second") } ?? ConsoleCell("as fast as possible")
            ),
            ("Started", .time(operation.text("started_at"))), ("Ended", .time(operation.text("ended_at"))),
        ]
        if operation.text("undo_started_at") != nil {
            facts += [
                ("Undone", .count(operation.int("undone"))), ("Moved on", .count(operation.int("past"))),
                ("Undone by", .text(operation.text("undo_said_by"))), ("In the role", .text(operation.text("undo_by"))),
                ("With the login", .text(operation.text("undo_login"))),
            ]
        }
        if operation.isTrue("can_undo") { facts.append(("Can be undone until", .time(operation.text("undo_until")))) }
        let progress = OperationProgress(operation)
        var parts: [ConsolePart] = []
        if progress.isOpen {
            parts.append(
                .progress(
                    label: progress.label, share: progress.share, says: progress.says, live: "operation.\(id)"))
        }
        parts.append(.facts(facts))
        parts.append(
            .facts(
                (operation["filter"]?.members ?? [:]).sorted { $0.key < $1.key }.map {
                    ($0.key, ConsoleCell($0.value.plainText ?? $0.value.pretty))
                }))
        if context.mayAct() { parts.append(.forms(actions(id, operation, state))) }
        parts += [
            .heading("Jobs"),
            .tabs(
                ["done", "nothing", "refused", "undone", "past"].map {
                    ConsoleCell($0, href: PageAddress.to("/operations/\(id)", [("which", $0)]))
                }),
            .table(
                items,
                [
                    .own("Job") { ConsoleCell($0.text("job") ?? "", href: $0.int("job").map(PageAddress.job)) },
                    .text("Outcome", "outcome"), .text("Reason", "reason"), .text("Undo", "undo"),
                    .text("Why not undone", "undo_reason"), .time("Time", "at"),
                ], empty: "No jobs to show; those of an operation are listed for a day.", next: next),
        ]
        return ConsolePage(
            title: "Operation \(id)", entry: "Operations", parts: parts,
            live: progress.isOpen ? "operation:\(id):\(state)" : nil)
    }

    private static func actions(_ id: Int64, _ operation: TemplateValue, _ state: String) -> [ConsoleForm] {
        let field = ConsoleField(name: "id", value: "\(id)", kind: .hidden)
        func form(_ name: String, _ button: String) -> ConsoleForm {
            ConsoleForm(id: name, action: PageAddress.to("/act/operation.\(name)"), button: button, fields: [field])
        }
        var forms: [ConsoleForm] = []
        switch state {
        case "running": forms += [form("pause", "Pause"), form("stop", "Stop")]
        case "undoing": forms += [form("pause", "Pause the undoing")]
        case "paused":
            forms += [form("resume", "Go on")] + (operation.isTrue("is_undoing") ? [] : [form("stop", "Stop")])
        default: break
        }
        if operation.isTrue("can_undo") { forms.append(form("undo", "Undo")) }
        return forms
    }

    private static func audit(_ context: PageContext) async throws -> ConsolePage {
        let (action, who, object) = (context.query("action"), context.query("who"), context.query("object"))
        let rows = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(a)), '[]') from millrace.audit_list(null, null, $1, $2, $3, $4, 100) a",
            [.text(action), .text(who), .text(object), .int8(try context.number("after"))]
        ).elements
        let filter = [("action", action), ("who", who), ("object", object)]
        let next = rows.count < 100 ? nil : PageAddress.to("/audit", filter + [("after", rows.last?.text("id"))])
        return ConsolePage(
            title: "Audit", entry: "Audit",
            parts: [
                .forms([
                    ConsoleForm(
                        id: "filter", action: PageAddress.to("/audit"), button: "Show",
                        fields: [
                            ConsoleField(name: "action", label: "Action", value: action ?? ""),
                            ConsoleField(name: "who", label: "Who", value: who ?? ""),
                            ConsoleField(name: "object", label: "Object", value: object ?? ""),
                        ], isSearch: true)
                ]),
                .table(
                    rows,
                    [
                        .time("Time", "at"), .text("Role", "who"), .text("Login", "login"), .text("Said by", "said_by"),
                        .text("Action", "action"),
                        .text("Object", "object"),
                        .own("Detail") { row in
                            let detail = (row["detail"]?.members ?? [:]).sorted { $0.key < $1.key }.map {
                                "\($0.key) \($0.value.plainText ?? $0.value.pretty)"
                            }
                            return ConsoleCell(String(detail.joined(separator: ", ").prefix(400)))
                        },
                    ], empty: "Nobody has acted yet.", next: next),
                .list([ConsoleCell("As JSON lines", href: PageAddress.to("/audit/export", filter))]),
            ])
    }

    /// Everything that fits, the newest first, read page by page.
    private static func export(_ context: PageContext) async throws -> Response {
        // Refused now, not in the middle.
        _ = try await context.json("select to_jsonb(count(*)) from millrace.audit_list(page => 1)")
        return Response(
            headers: [
                Header("Content-Type", "application/x-ndjson"),
                Header("Content-Disposition", "attachment; filename=\"audit.jsonl\""),
            ],
            body: .stream { writer in
                var after: Int64?
                while true {
                    let rows = try await context.json(
                        "select coalesce(jsonb_agg(jsonb_build_object('id', a.id, 'line', to_jsonb(a)::text)), '[]') from millrace.audit_list(null, null, $1, $2, $3, $4, 500) a",
                        [
                            .text(context.query("action")), .text(context.query("who")), .text(context.query("object")),
                            .int8(after),
                        ]
                    ).elements
                    for row in rows { try await writer.write(Array(((row.text("line") ?? "") + "\n").utf8)) }
                    guard rows.count == 500, let last = rows.last?.text("id").flatMap({ Int64($0) }) else { return }
                    after = last
                }
            })
    }
}
