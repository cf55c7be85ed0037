import MillraceJobs
import MillraceQueues
import Postgres

extension Command {
    static let operationsList = Command(
        ["operations", "list"],
        summary: "List operations, newest first",
        discussion: "An operation is one action on all jobs that a filter names.",
        flags: [
            .single("limit", "N", .integer(1...500), fallback: "50", help: "Show at most this many."),
            .single("after", "ID", .jobID, environment: .none, help: "Only operations older than this one."),
        ],
        examples: [Example("millrace operations list", "what runs, what ran, and what can be undone")]
    ) { invocation in
        let limit = invocation.parsed.integer("limit") ?? 50
        let after = invocation.parsed.integer("after").map { Int64($0) }
        let rows = try await invocation.withSchema { connection in
            try await Queue.operations(after: after, limit: limit, on: connection)
        }
        invocation.console.list("operations", rows.map(\.json), table: OperationRow.table(rows))
        if rows.count == limit, invocation.console.format == .human, let last = rows.last {
            invocation.console.note("more may follow: --after \(last.id)")
        }
        return .done
    }

    static let operationsShow = Command(
        ["operations", "show"],
        summary: "Show an operation, and what became of each job",
        arguments: [Argument("id", .one, .jobID, help: "the operation's id")],
        flags: [
            .single(
                "which", "WHICH", .choice(["done", "nothing", "refused", "undone", "past"]), environment: .none,
                help: "Only these jobs; past: an undo found that they had moved on."),
            .single("limit", "N", .integer(1...500), fallback: "20", help: "Show at most this many jobs."),
            .single("after", "ID", .jobID, environment: .none, help: "Only jobs older than this one."),
        ],
        examples: [
            Example("millrace operations show 7", "how far it has come"),
            Example("millrace operations show 7 --which past", "what could not be undone, and why"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let id = Int64(parsed.integer("id") ?? 0)
        let (row, items) = try await invocation.withSchema { connection in
            guard let row = try await Queue.operation(id, on: connection) else { throw OperationRun.unknown(id) }
            let items = try await Queue.items(
                of: id, which: parsed.string("which"), after: parsed.integer("after").map { Int64($0) },
                limit: parsed.integer("limit") ?? 20, on: connection)
            return (row, items)
        }
        let members = row.members + [.init(key: "items", value: .array(items.map(\.json)))]
        invocation.console.show(.object(members)) {
            for line in row.lines { invocation.console.print(line) }
            if !items.isEmpty { invocation.console.print(OperationItem.table(items)) }
        }
        return .done
    }

    static let operationsStart = Command(
        ["operations", "start"],
        summary: "Start an action on all jobs that match filters",
        discussion: """
            Workers carry it out, step by step; it reaches only jobs that were there when it was started. It can be \
            paused, stopped, and undone for ten minutes after its end. Without a worker, millrace operations run \
            takes its steps. Without --state, cancel means jobs that wait or run, retry means dead ones, delete \
            means ended ones, and reschedule and priority mean those that wait.
            """,
        arguments: [
            Argument("action", .one, .choice(OperationRun.actions), help: "what is done to each job")
        ],
        flags: [
            .single(
                "state", "STATE",
                .choice(["ready", "scheduled", "retrying", "blocked", "running", "succeeded", "cancelled", "dead"]),
                environment: .none, help: "Only jobs in this state.")
        ] + JobFlags.bulkFilter + JobFlags.ofOwner + JobFlags.ofDead + JobFlags.ofCause + [
            .single("at", "TIME", .instant, environment: .none, help: "For reschedule: the new time."),
            .single(
                "in", "DURATION", .duration(.zero ... .days(36_500)), environment: .none,
                help: "For reschedule: this long from now."),
            .single(
                "to", "N", .integer(0...9), environment: .none, help: "For priority: 0 (first) to 9 (last)."),
            .single("pace", "N", .integer(1...10_000), environment: .none, help: "At most this many jobs a second."),
            .single(
                "key", "KEY", environment: .none,
                help: "A key of your choice: a second start with the same key does nothing."),
            .toggle("dry-run", environment: .none, help: "Say what it would affect, and start nothing."),
            .toggle("wait", environment: .none, help: "Take its steps here too, and wait for its end."),
        ],
        examples: [
            Example("millrace operations start cancel --queue mail --dry-run", "how many would it be? show some"),
            Example("millrace operations start cancel --queue mail --tag spring --wait --yes", "and to the end"),
            Example("millrace operations start retry --error 'timed out' --since 2h --pace 50", "gently"),
        ]
    ) { invocation in
        try await OperationRun(invocation).start()
    }

    static let operationsRun = Command(
        ["operations", "run"],
        summary: "Take an operation's steps here, to its end",
        discussion: "For when no worker runs. Beside workers it helps: each step is taken by one of them.",
        arguments: [Argument("id", .one, .jobID, help: "the operation's id")],
        examples: [Example("millrace operations run 7", "no worker is needed")]
    ) { invocation in
        let id = Int64(invocation.parsed.integer("id") ?? 0)
        return try await invocation.withSchema { connection in
            let run = OperationRun(invocation)
            return run.show(try await run.finish(id, on: connection))
        }
    }

    static let operationsPause = changing(.pause, "Pause an operation, or its undo", "paused")
    static let operationsResume = changing(.resume, "Let a paused operation go on", "resumed")
    static let operationsStop = changing(
        .stop, "End an operation where it is", "stopped", discussion: "What it has done stays done. It can be undone.")
    static let operationsUndo = changing(
        .undo, "Undo an operation",
        "being undone",
        discussion: """
            Possible while it runs and for ten minutes after its end. Each job goes back to where it stood, with its \
            time, attempts, crashes, priority, key and flow. Jobs that have moved on meanwhile are left alone and \
            listed as moved on, with the reason: millrace operations show ID --which past.
            """)

    private static func changing(
        _ verb: Queue.OperationVerb, _ summary: String, _ done: String, discussion: String = ""
    ) -> Command {
        Command(
            ["operations", verb.rawValue], summary: summary, discussion: discussion,
            arguments: [Argument("id", .one, .jobID, help: "the operation's id")],
            flags: verb == .undo
                ? [.toggle("wait", environment: .none, help: "Take its steps here too, and wait for its end.")] : [],
            examples: [Example("millrace operations \(verb.rawValue) 7", "the operation 7")]
        ) { invocation in
            let id = Int64(invocation.parsed.integer("id") ?? 0)
            let run = OperationRun(invocation)
            return try await invocation.withSchema { connection in
                let changed = try await Queue.change(id, verb, on: connection)
                guard var row = try await Queue.operation(id, on: connection) else { throw OperationRun.unknown(id) }
                if verb == .undo, invocation.parsed.isOn("wait") { row = try await run.finish(id, on: connection) }
                let members = row.members + [.init(key: "changed", value: .bool(changed))]
                invocation.console.show(.object(members)) {
                    invocation.console.print(
                        "operation \(id) is \(changed && row.isOpen ? done : row.state)\(changed ? "" : " already")")
                    if !row.isOpen || row.isUndoing { invocation.console.print(row.counts) }
                }
                return .done
            }
        }
    }
}

/// Starts operations, and takes their steps where that is asked for.
struct OperationRun {
    static let actions = ["cancel", "retry", "retry_fresh", "delete", "reschedule", "priority"]

    private let invocation: Invocation
    private var console: Console { invocation.console }

    init(_ invocation: Invocation) { self.invocation = invocation }

    static func unknown(_ id: Int64) -> Failure {
        Failure(.notFound, "there is no operation \(id)", hint: "millrace operations list shows them all")
    }

    func start() async throws -> ExitCode {
        let parsed = invocation.parsed
        let action = parsed.string("action") ?? ""
        try checkArguments(of: action)
        return try await invocation.withSchema { connection in
            for (what, name) in [(Named.queue, parsed.string("queue")), (.kind, parsed.string("kind"))] {
                if let name, let unknown = try await Invocation.unknown(what, [name], on: connection) { throw unknown }
            }
            let filter = try await filter(on: connection)
            let args = try await args(of: action, on: connection)
            let preview = try await Queue.previewOperation(action, filter: filter, args: args, on: connection)
            let reaches = "\(preview.isExact ? "" : "at least ")\(Humane.count(preview.jobs, "job"))"
            if parsed.isOn("dry-run") {
                console.show([
                    "would": .string(action), "jobs": .int(preview.jobs), "exact": .bool(preview.isExact),
                    "sample": .raw(String(decoding: preview.sample, as: UTF8.self)),
                ]) { console.print("\(action) would reach \(reaches)") }
                return .done
            }
            try invocation.confirm("\(action) of \(reaches)")
            let id = try await Queue.startOperation(
                action, filter: filter, args: args, pace: parsed.integer("pace"), key: parsed.string("key"),
                on: connection)
            if parsed.isOn("wait") { return show(try await finish(id, on: connection)) }
            guard let row = try await Queue.operation(id, on: connection) else { throw Self.unknown(id) }
            console.show(row.json) {
                console.print("operation \(id) will affect \(reaches)")
                console.note(
                    "millrace operations show \(id) says how far it is, millrace operations undo \(id) undoes it")
            }
            return .done
        }
    }

    /// Begins an operation on jobs in a state that the flags leave, and takes its steps to its end.
    func whole(_ action: String, state: String, pace: Int?, on connection: Connection) async throws -> OperationRow {
        let filter = try await filter(state: state, on: connection)
        let id = try await Queue.startOperation(
            action, filter: filter, args: "{}", pace: pace, key: nil, on: connection)
        return try await finish(id, on: connection)
    }

    /// Takes steps until it has ended; others may take some too.
    func finish(_ id: Int64, on connection: Connection) async throws -> OperationRow {
        let region = console.live()
        let shows = console.errors.isTerminal && console.verbosity > .quiet
        while true {
            try Task.checkCancellation()
            let step = try await Queue.stepOperation(id, on: connection)
            guard let row = try await Queue.operation(id, on: connection) else { throw Self.unknown(id) }
            if shows { region.update([row.counts]) }
            guard row.isOpen else {
                if shows { region.update([]) }
                return row
            }
            if let wait = step.wait, wait > .zero { try await Task.sleep(for: min(wait, .seconds(1))) }
        }
    }

    func show(_ row: OperationRow) -> ExitCode {
        console.show(row.json) {
            console.print("operation \(row.id) is \(row.state)")
            console.print(row.counts)
        }
        return .done
    }

    private func checkArguments(of action: String) throws(Failure) {
        let parsed = invocation.parsed
        let hasTime = parsed.string("at") != nil || parsed.duration("in") != nil
        if (action == "reschedule") != hasTime {
            throw Failure(
                .misused, action == "reschedule" ? "reschedule to when?" : "--at and --in are for reschedule",
                hint: action == "reschedule" ? "add --at or --in" : nil)
        }
        if parsed.string("at") != nil, parsed.duration("in") != nil {
            throw Failure(.misused, "--at and --in exclude each other: choose one")
        }
        if (action == "priority") != (parsed.integer("to") != nil) {
            throw Failure(
                .misused, action == "priority" ? "which priority?" : "--to is for priority",
                hint: action == "priority" ? "add --to with 0 (first) to 9 (last)" : nil)
        }
    }

    private func filter(state: String? = nil, on connection: Connection) async throws -> String {
        let parsed = invocation.parsed
        var members: [JSONValue.Member] = []
        if let state = state ?? parsed.string("state") { members.append(.init(key: "state", value: .string(state))) }
        for name in ["queue", "kind", "tag", "tenant", "unique", "error"] {
            if let value = parsed.string(name) { members.append(.init(key: name, value: .string(value))) }
        }
        if let group = parsed.integer("group") { members.append(.init(key: "group", value: .string("\(group)"))) }
        if let field = parsed.string("field") {
            let parts = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            members.append(.init(key: "field", value: .string(parts[0])))
            members.append(.init(key: "value", value: .string(parts.last ?? "")))
        }
        if let value = parsed.string("limit-key") { members.append(.init(key: "limit_key", value: .string(value))) }
        for name in ["since", "until"] {
            guard let text = parsed.string(name) else { continue }
            let time =
                switch try Invocation.moment(text) {
                case .at(let date): date
                case .ago(let span): try await Queue.now(plus: .zero - span, on: connection)
                }
            members.append(.init(key: name, value: JSONValue(time)))
        }
        guard !members.isEmpty else {
            throw Failure(.misused, "which jobs?", hint: "add filters such as --queue or --state; see --help")
        }
        return JSONValue.object(members).compact
    }

    private func args(of action: String, on connection: Connection) async throws -> String {
        let parsed = invocation.parsed
        if let priority = parsed.integer("to") {
            return JSONValue.object([.init(key: "priority", value: .int(priority))]).compact
        }
        var time = try parsed.string("at").map { text in try InstantText.read(text) }
        if let span = parsed.duration("in") { time = try await Queue.now(plus: span, on: connection) }
        return time.map { JSONValue.object([.init(key: "run_at", value: JSONValue($0))]).compact } ?? "{}"
    }
}
