import Postgres
import Queues

extension Command {
    static let queuesList = Command(
        ["queues", "list"],
        summary: "List the queues and what stands in them",
        flags: [.toggle("exact", help: "Count all, and not just up to 10,000.")],
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
        "pause", summary: "Stop claiming from queues; what runs goes on", done: "paused", already: "paused already"
    ) { name, connection in try await Queue.pause(name, on: connection) }

    static let queuesResume = switching(
        "resume", summary: "Claim from paused queues again", done: "resumed", already: "not paused"
    ) { name, connection in try await Queue.resume(name, on: connection) }

    private static func switching(
        _ verb: String, summary: String, done: String, already: String,
        _ act: @escaping @Sendable (String, Connection) async throws -> Bool
    ) -> Command {
        Command(
            ["queues", verb], summary: summary,
            arguments: [Argument("name", .many, .queueName, help: "the queues' names")],
            examples: [Example("millrace queues \(verb) mail", "one queue")]
        ) { invocation in
            let names = invocation.parsed.list("name")
            let changed = try await invocation.withSchema { connection in
                var changed: [(name: String, changed: Bool)] = []
                for name in names {
                    let one = (name: name, changed: try await act(name, connection))
                    changed.append(one)
                    // At once: should the next one fail, this one still has changed.
                    guard invocation.console.format == .human else { continue }
                    invocation.console.print("\(name): \(one.changed ? done : already)")
                }
                return changed
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
        summary: "Say how long a queue's ended jobs are kept",
        discussion: """
            short is a day, standard 14 days, long a year. Without --state it is for all ended jobs; with it, dead or cancelled \
            ones may be kept longer, or less long, than those that succeeded. What succeeds from now on is kept so; for dead \
            and cancelled jobs it counts for those there are as well, as long as they are kept at all.
            """,
        arguments: [
            Argument("name", .one, .queueName, help: "the queue's name"),
            Argument("class", .one, .choice(["short", "standard", "long"]), help: "how long"),
        ],
        flags: [
            .single(
                "state", "STATE", .choice(["succeeded", "cancelled", "dead"]), environment: .none,
                help: "Only for jobs that end like this.")
        ],
        examples: [
            Example("millrace queues retention metrics short", "a day is enough"),
            Example("millrace queues retention metrics long --state dead", "but not for what went wrong"),
        ]
    ) { invocation in
        let state = invocation.parsed.string("state")
        let name = invocation.parsed.string("name") ?? ""
        let retention = invocation.parsed.string("class") ?? ""
        let changed = try await invocation.withSchema {
            try await Queue.setRetention(retention, of: name, state: state, on: $0)
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

    static let queuesDrain = Command(
        ["queues", "drain"],
        summary: "Wait until a queue has nothing left to do",
        discussion: """
            Waits until nothing in it is ready, due or running; jobs scheduled for later do not count. Nothing is paused: \
            jobs enqueued meanwhile are waited for too. An outage of the database is waited out. Exit 7 when --timeout \
            passed first.
            """,
        arguments: [Argument("name", .one, .queueName, help: "the queue's name")],
        examples: [Example("millrace queues drain mail --timeout 10m", "before a deployment, say")]
    ) { invocation in
        try await invocation.drain(invocation.parsed.string("name") ?? "")
    }
}

extension Invocation {
    fileprivate func drain(_ name: String) async throws -> ExitCode {
        let deadline = deadline
        let region = console.live()
        let shows = console.errors.isTerminal && console.verbosity > .quiet
        let options = try connectionOptions()
        return try await withSchema { given in
            var connection: Connection? = given
            var last = "the database is away"
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
                    last = "the database is away"
                }
                if shows { region.update([last]) }
                if let deadline, deadline <= .now { throw Failure(.timedOut, "not drained in time; \(last)") }
                try await Task.sleep(
                    for: min(.milliseconds(250), deadline.map { max(.zero, $0 - .now) } ?? .seconds(1)))
            }
            throw Failure(.notFound, "there is no queue \(name)", hint: "millrace queues list shows those there are")
        }
    }
}
