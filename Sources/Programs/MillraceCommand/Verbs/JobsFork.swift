import Encryption
import MillraceQueues
import Postgres

extension Command {
    static let jobsFork = Command(
        ["jobs", "fork"],
        summary: "Make a job that begins with the steps another has on record",
        discussion: """
            The new job has the kind, tenant, owner, tags and arguments of the other, and its steps from before --from, in the \
            order of their record; without --from all of them. Its run gets these values and continues after them. It has the \
            unique key if that is free, and waits for no other job. It has a number of its own: what a handler does outside \
            under a key made of the job's number is done again. The steps it was given are not undone if it fails: they stay the \
            other job's. A step that the other job may still undo is refused, and so is a job that has not ended, unless --live \
            says that both may go on.
            """,
        arguments: [Argument("id", .one, .jobID, help: "the job's id")],
        flags: [
            .single(
                "from", "STEP", environment: .none,
                help: "The first step that it does itself; if not given, it has all that are on record."),
            .single(
                "args", "JSON", environment: .none,
                help:
                    "Other arguments: JSON, @file, or - for standard input. Encrypted if the other's are. For admins and workers."
            ),
            .single("queue", "NAME", .queueName, environment: .none, help: "Its queue; the other's if not given."),
            .toggle("live", environment: .none, help: "Also of a job that has not ended: both go on."),
            .toggle("dry-run", environment: .none, help: "Print which steps it would have, and make nothing."),
            Setting.encryptionKeys.flag,
        ],
        examples: [
            Example("millrace jobs fork 42 --from charge --dry-run", "which steps come before charge?"),
            Example("millrace jobs fork 42 --from charge", "do it again from there on"),
            Example("millrace jobs fork 42 --from charge --args '{\"card\": \"new\"}'", "with another card"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let id = Int64(parsed.integer("id") ?? 0)
        let step = parsed.string("from")
        let live = parsed.isOn("live")
        let given = try parsed.string("args").map {
            try invocation.json(at: $0, named: "the arguments", most: 1_048_576)
        }
        let isDry = parsed.isOn("dry-run")
        let (steps, new) = try await invocation.withSchema { connection in
            guard let job = try await Queue.job(id, on: connection) else { throw Invocation.unknown(id) }
            let steps = try await Queue.forkPreview(of: id, from: step, live: live, on: connection)
            if isDry { return (steps, Int64?.none) }
            let args = try given.map { try invocation.sealed($0, as: job) }
            return (
                steps,
                try await Queue.fork(
                    id, from: step, args: args, queue: parsed.string("queue"), live: live, on: connection)
            )
        }
        let taken = steps.filter(\.taken).map(\.name)
        let left = steps.filter { !$0.taken }.map(\.name)
        invocation.console.show([
            "job": .int(Int(id)), "fork": JSONValue(new.map { Int($0) }), "from": JSONValue(step),
            "taken": JSONValue(taken), "left": JSONValue(left),
        ]) {
            invocation.console.print(
                new.map { "job \(id) is forked as \($0)" } ?? "would fork job \(id)"
                    + (step.map { " at \(DisplayWidth.harmless($0))" } ?? ""))
            for (what, names) in [("it has", taken), ("it does itself", left)] where !names.isEmpty {
                let list = names.map { DisplayWidth.harmless($0) }.joined(separator: ", ")
                invocation.console.print("  \(what): \(list)")
            }
        }
        return .done
    }
}

extension Invocation {
    /// New arguments in the form of the job's own: encrypted if those are.
    func sealed(_ args: [UInt8], as job: JobDetail) throws -> [UInt8] {
        do {
            guard let old = job.args, try SealedEnvelope(old) != nil else { return args }
            return try neededKeys().seal(args, kind: job.kind)
        } catch let error as SealError {
            throw Failure(.failed, "job \(job.id): \(error.description)")
        }
    }
}
