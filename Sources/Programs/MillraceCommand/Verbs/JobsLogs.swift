import MillraceJobs
import MillraceQueues
import Postgres

extension Command {
    static let jobsLogs = Command(
        ["jobs", "logs"],
        summary: "Print the log of a job's runs",
        discussion: """
            Prints what handlers log with context.log, oldest first, with the run that logged it. The newest 200 lines \
            and 64 KiB of a job are kept, as long as the job itself. With --follow it continues until the job has \
            ended; exit 7 when --timeout passed first.
            """,
        arguments: [Argument("id", .one, .jobID, help: "the job's id")],
        flags: [
            .toggle("follow", short: "f", environment: .none, help: "Continue with new lines until the job has ended.")
        ],
        examples: [
            Example("millrace jobs logs 42", "what is kept"),
            Example("millrace jobs logs 42 --follow --jsonl", "each line as it comes, for a script"),
        ]
    ) { invocation in
        let id = Int64(invocation.parsed.integer("id") ?? 0)
        let follower = NumberedRowFollower<LogRow>(
            id: id, invocation: invocation, list: "lines", whenNone: "has logged nothing", after: 0,
            cut: { "… \(Humane.count($0, "line")) before these were cut" }
        ) { after, connection in try await Queue.logs(of: id, after: after, on: connection) }
        return try await invocation.withSchema { connection in try await follower.run(on: connection) }
    }
}

extension Invocation {
    /// What a job's runs have given out, and its steps and log: without those for a client, which may not read them.
    func traces(
        of id: Int64, redacted: Bool = false, on connection: Connection
    ) async throws(PostgresError) -> Traces {
        // Its owner may read what it gives out.
        let output = try await Queue.output(of: id, redacted: redacted, on: connection)
        do throws(PostgresError) {
            return Traces(
                output: output, steps: try await Queue.steps(of: id, redacted: redacted, on: connection),
                log: try await Queue.logs(of: id, redacted: redacted, on: connection),
                forks: try await Queue.forks(of: id, on: connection),
                runs: try await Queue.runs(of: id, on: connection))
        } catch {
            guard error.sqlState == "42501" else { throw error }
            return Traces(output: output)
        }
    }
}
