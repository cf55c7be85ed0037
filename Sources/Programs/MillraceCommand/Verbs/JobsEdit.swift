import Encryption
import MillraceQueues
import Postgres

extension Command {
    static let jobsEdit = Command(
        ["jobs", "edit"],
        summary: "Give a dead job other arguments, and run it again",
        discussion: """
            For admins. It runs again from its first attempt, with the steps that it has on record unless --fresh says otherwise: \
            they stay as the old arguments have made them. What the kind's rules hide reads "[redacted]" and stays as it is: leave \
            that text in its place. The audit has the old and the new values, without what is hidden. A job that is neither dead nor \
            cancelled is refused with exit 4.
            """,
        arguments: [
            Argument("id", .one, .jobID, help: "the job's id"),
            Argument(
                "args", .one, help: "its new arguments: JSON, @file, or - for standard input; encrypted if the old are"),
        ],
        flags: [
            .toggle("fresh", environment: .none, help: "Do all of its steps again."), Setting.encryptionKeys.flag,
        ],
        examples: [
            Example("millrace jobs edit 42 '{\"city\": \"Graz\", \"token\": \"[redacted]\"}'", "the token stays"),
            Example("millrace jobs edit 42 @args.json --fresh", "all of its steps again"),
        ]
    ) { invocation in
        let id = Int64(invocation.parsed.integer("id") ?? 0)
        let isFresh = invocation.parsed.isOn("fresh")
        let given = try invocation.json(
            at: invocation.parsed.string("args") ?? "", named: "the arguments", most: 1_048_576)
        try await invocation.withSchema { connection in
            guard let job = try await Queue.job(id, on: connection) else { throw Invocation.unknown(id) }
            try await Queue.retry(
                id, with: try invocation.sealed(given, as: job), fresh: isFresh, on: connection)
        }
        invocation.console.show(["id": .int(Int(id)), "fresh": .bool(isFresh)]) {
            invocation.console.print("job \(id): its arguments are changed, and it runs again")
        }
        return .done
    }
}
