import MillraceQueues
import Postgres

extension Command {
    static let queuesList = Command(
        ["queues", "list"],
        summary: "List the queues and their jobs",
        flags: [.toggle("exact", help: "Count all, not only up to 10,000.")],
        examples: [Example("millrace queues list", "depth, age, state of each")]
    ) { invocation in
        let cap = invocation.parsed.isOn("exact") ? nil : QueueDepth.cap
        let queues = try await invocation.withSchema { connection in
            try await Queue.depths(cap: cap, on: connection, deadline: cap == nil ? .seconds(600) : nil)
        }
        invocation.console.list("queues", queues.map(\.json), table: QueueDepth.table(queues, rates: nil, cap: cap))
        return .done
    }

    static let queuesPause = switching(
        "pause", summary: "Stop claiming from queues; running jobs continue", done: "paused", already: "paused already"
    ) { name, connection throws(PostgresError) in try await Queue.pause(name, on: connection) }

    static let queuesResume = switching(
        "resume", summary: "Claim from paused queues again", done: "resumed", already: "not paused"
    ) { name, connection throws(PostgresError) in try await Queue.resume(name, on: connection) }

    private static func switching(
        _ verb: String, summary: String, done: String, already: String,
        _ act: @escaping @Sendable (String, Connection) async throws(PostgresError) -> Bool
    ) -> Command {
        Command(
            ["queues", verb], summary: summary,
            discussion: verb == "pause"
                ? "Jobs that run go on. Notices, webhooks and check-ins are not jobs and have lanes of their own: a pause does not reach them. millrace providers block stops the calls to a provider."
                : "",
            arguments: [Argument("name", .many, .queueName, help: "the queues' names")],
            flags: verb == "pause" ? [.create(.queue)] : [],
            examples: [Example("millrace queues \(verb) mail", "one queue")]
        ) { invocation in
            let names = invocation.parsed.list("name")
            let changed = try await invocation.acting(on: .queue, names, isMade: invocation.creates) {
                connection throws(PostgresError) in
                var changed: [(name: String, changed: Bool)] = []
                for name in names { changed.append((name: name, changed: try await act(name, connection))) }
                return changed
            }
            // Not in the transaction of the pause: a note that fails takes nothing back.
            let unreached = verb == "pause" ? await invocation.roomsInUse() : []
            if !unreached.isEmpty {
                invocation.console.note(
                    "not paused: \(unreached.joined(separator: ", ")), which are not jobs; millrace providers block stops the calls to a provider"
                )
            }
            if invocation.console.format == .human {
                for one in changed { invocation.console.print("\(one.name): \(one.changed ? done : already)") }
            }
            let items = changed.map { one -> JSONValue in ["queue": .string(one.name), "changed": .bool(one.changed)] }
            switch invocation.console.format {
            case .human: break
            case .json, .jsonLines: invocation.console.list("queues", items, table: Table([]))
            }
            return .done
        }
    }

    static let queuesRetention = Command(
        ["queues", "retention"],
        summary: "Set how long a queue's ended jobs are kept",
        discussion: """
            short is a day, standard 14 days, long a year. Without --state it applies to all ended jobs; with it, dead \
            or cancelled ones may be kept longer or shorter than succeeded ones. For succeeded jobs it applies to \
            those that end from now on; for dead and cancelled jobs also to existing ones, as long as they are still \
            kept.
            """,
        arguments: [
            Argument("name", .one, .queueName, help: "the queue's name"),
            Argument("class", .one, .choice(["short", "standard", "long"]), help: "how long"),
        ],
        flags: [
            .single(
                "state", "STATE", .choice(["succeeded", "cancelled", "dead"]), environment: .none,
                help: "Only for jobs that end like this."),
            .create(.queue),
        ],
        examples: [
            Example("millrace queues retention metrics short", "a day is enough"),
            Example("millrace queues retention metrics long --state dead", "but not for what went wrong"),
        ]
    ) { invocation in
        let state = invocation.parsed.string("state")
        let name = invocation.parsed.string("name") ?? ""
        let retention = invocation.parsed.string("class") ?? ""
        let changed = try await invocation.acting(on: .queue, [name], isMade: invocation.creates) {
            connection throws(PostgresError) in
            try await Queue.setRetention(retention, of: name, state: state, on: connection)
        }
        invocation.console.show([
            "queue": .string(name), "state": JSONValue(state), "retention": .string(retention),
            "changed": .bool(changed),
        ]) {
            let what = state.map { "\(name), \($0) jobs" } ?? name
            invocation.console.print("\(what): \(retention)\(changed ? "" : " already")")
        }
        return .done
    }

    static let queuesDrain = waiting(
        "drain", discussion: "The same as millrace queues wait. It stops nothing: a worker's drain is something else.")
    static let queuesWait = waiting("wait")

    private static func waiting(_ verb: String, discussion: String = "") -> Command {
        Command(
            ["queues", verb],
            summary: "Wait until a queue has nothing left to do",
            discussion: discussion + (discussion.isEmpty ? "" : " ") + """
                Waits until nothing in it is ready, due or running; jobs scheduled for later do not count. Nothing is paused: \
                jobs enqueued meanwhile are waited for too. An outage of the database is waited out. Exit 7 when --timeout \
                passed first.
                """,
            arguments: [Argument("name", .one, .queueName, help: "the queue's name")],
            examples: [Example("millrace queues \(verb) mail --timeout 10m", "before a deployment, say")]
        ) { invocation in
            try await invocation.drain(invocation.parsed.string("name") ?? "")
        }
    }

    static let queuesRemove = Command(
        ["queues", "remove"],
        summary: "Remove queues that nothing uses",
        discussion: """
            Only an empty queue can be removed: one without jobs, without records of ended ones, without a schedule, \
            without a kind whose jobs go there, and without a worker that serves it by name. Its limit and its \
            retention are removed with it. Anything else is refused with exit code 4.
            """,
        arguments: [Argument("name", .many, .queueName, help: "the queues' names")],
        examples: [Example("millrace queues remove mial", "what a typing mistake has made")]
    ) { invocation in
        let names = invocation.parsed.list("name")
        try await invocation.acting(on: .queue, names) { connection throws(PostgresError) in
            for name in names { _ = try await Queue.removeQueue(name, on: connection) }
        }
        if invocation.console.format == .human {
            for name in names { invocation.console.print("\(name): removed") }
        } else {
            invocation.console.list(
                "queues", names.map { ["queue": .string($0), "removed": true] }, table: Table([]))
        }
        return .done
    }
}

extension Invocation {
    fileprivate func drain(_ name: String) async throws -> ExitCode {
        let deadline = deadline
        let region = console.live()
        let shows = console.errors.isTerminal && console.verbosity > .quiet
        let options = try connectionOptions()
        return try await withSchema { given in
            if let unknown = try await Self.unknown(.queue, [name], on: given) { throw unknown }
            var connection: Connection? = given
            var last = "the database is unreachable"
            while true {
                do throws(PostgresError) {
                    let now: Connection
                    if let connection { now = connection } else { now = try await Connection.open(options) }
                    connection = now
                    guard let load = try await Queue.load(of: name, on: now) else { break }
                    last = "\(name): \(load.ready) ready, \(load.due) due, \(load.running) running"
                    if load.isEmpty {
                        if shows { region.update([]) }
                        console.show(["queue": .string(name), "drained": true]) { console.print("\(name) is drained") }
                        return .done
                    }
                } catch {
                    guard error.isOutage || error.isSlowness else { throw error }
                    connection = nil
                    last = "the database is unreachable"
                }
                if shows { region.update([last]) }
                if let deadline, deadline <= .now { throw Failure(.timedOut, "not drained in time; \(last)") }
                try await Task.sleep(
                    for: min(.milliseconds(250), deadline.map { max(.zero, $0 - .now) } ?? .seconds(1)))
            }
            throw Failure(.notFound, "there is no queue \(name)", hint: "millrace queues list shows them all")
        }
    }
}
