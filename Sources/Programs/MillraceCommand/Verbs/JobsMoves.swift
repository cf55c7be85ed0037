import MillraceJobs
import MillraceQueues
import Postgres

extension Command {
    static let jobsPriority = Command(
        ["jobs", "priority"],
        summary: "Give a waiting job another priority",
        discussion: """
            It goes to the end of that priority's line, and its later attempts run at it too. A job that runs, that \
            has ended or that has this priority is left alone, with exit code 4. For many jobs: millrace operations \
            start priority.
            """,
        arguments: [
            Argument("id", .one, .jobID, help: "the job's id"),
            Argument("priority", .one, .integer(0...9), help: "0 (first) to 9 (last); 4 is the default"),
        ],
        examples: [Example("millrace jobs priority 42 0", "before all others of its queue")]
    ) { invocation in
        let priority = invocation.parsed.integer("priority") ?? 4
        return try await invocation.moving("it has priority \(priority)") { id, connection throws(PostgresError) in
            try await Queue.setPriority(priority, of: id, on: connection)
        }
    }

    static let jobsReschedule = Command(
        ["jobs", "reschedule"],
        summary: "Move a waiting job to another time",
        discussion: """
            A job that runs or has ended is left alone, with exit code 4. For many jobs: millrace operations start \
            reschedule.
            """,
        arguments: [Argument("id", .one, .jobID, help: "the job's id")],
        flags: [
            .single(
                "at", "TIME", .instant, environment: .none, help: "Not before this time, in ISO 8601 with its zone."),
            .single(
                "in", "DURATION", .duration(.zero ... .days(36_500)), environment: .none,
                help: "Not before this much time has passed."),
        ],
        examples: [
            Example("millrace jobs reschedule 42 --in 2h", "in two hours"),
            Example("millrace jobs reschedule 42 --in 0s", "now"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let time = try parsed.string("at").map { text in try InstantText.read(text) }
        let span = parsed.duration("in")
        guard (time == nil) != (span == nil) else {
            throw Failure(.misused, "to when?", hint: "give either --at or --in")
        }
        return try await invocation.moving("it is moved") { id, connection throws(PostgresError) in
            try await Queue.reschedule(id, to: time, after: span, on: connection)
        }
    }
}

extension Invocation {
    /// Moves the job that the line names, and says what came of it.
    fileprivate func moving(
        _ done: String, _ move: @Sendable (Int64, Connection) async throws(PostgresError) -> Bool
    ) async throws -> ExitCode {
        let id = Int64(parsed.integer("id") ?? 0)
        let (isMoved, job) = try await withSchema { connection in
            guard try await Queue.job(id, on: connection) != nil else { throw Invocation.unknown(id) }
            let isMoved = try await move(id, connection)
            return (isMoved, try await Queue.job(id, on: connection))
        }
        let state = job?.state.rawValue ?? "gone"
        console.show([
            "id": .int(Int(id)), "changed": .bool(isMoved), "state": .string(state),
            "priority": JSONValue(job?.priority), "run_at": JSONValue(job?.runAt),
        ]) {
            if isMoved { console.print("job \(id): \(done)") }
        }
        if !isMoved, console.format == .human { console.failure("job \(id) is \(state): nothing was changed") }
        return isMoved ? .done : .conflict
    }
}
