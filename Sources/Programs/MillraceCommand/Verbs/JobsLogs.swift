import Jobs
import Postgres
import Queues

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
        return try await invocation.withSchema { connection in
            try await LogFollower(id: id, invocation: invocation).run(on: connection)
        }
    }
}

/// Prints a job's lines, and with `--follow` those that come.
private struct LogFollower {
    private static let pause = Duration.milliseconds(300)

    let id: Int64
    let invocation: Invocation

    private var console: Console { invocation.console }

    func run(on connection: Connection) async throws -> ExitCode {
        let follows = invocation.parsed.isOn("follow")
        let deadline = invocation.deadline
        var last: Int64 = 0
        var all: [LogRow] = []
        while true {
            // Its state first: what its run has logged is there before its end is.
            guard let job = try await Queue.job(id, on: connection) else { throw Invocation.unknown(id) }
            let lines = try await Queue.logs(of: id, after: last, on: connection)
            say(lines, after: last)
            last = lines.last?.number ?? last
            if console.format == .json { all += lines }
            if !follows || job.state.isFinal { break }
            if let deadline, ContinuousClock.now >= deadline {
                finish(all)
                throw Invocation.gaveUp(id, job)
            }
            try await Task.sleep(for: Self.pause)
        }
        if last == 0, console.format == .human { console.note("job \(id) has logged nothing") }
        finish(all)
        return .done
    }

    private func say(_ lines: [LogRow], after last: Int64) {
        guard let first = lines.first else { return }
        let cut = first.number - last - 1
        switch console.format {
        case .human:
            if cut > 0 { console.note("… \(Humane.count(Int(cut), "line")) before these were cut") }
            for line in lines { console.print(line.line(colors: console.colorsOutput)) }
        case .jsonLines: console.list("lines", lines.map(\.json), table: Table([]))
        case .json: break
        }
    }

    private func finish(_ all: [LogRow]) {
        if console.format == .json { console.list("lines", all.map(\.json), table: Table([])) }
    }
}

extension Invocation {
    /// Steps, log and progress of a job; nothing for a client, which may not read them.
    func traces(
        of id: Int64, redacted: Bool = false, on connection: Connection
    ) async throws(PostgresError) -> Traces {
        do throws(PostgresError) {
            return Traces(
                steps: try await Queue.steps(of: id, redacted: redacted, on: connection),
                log: try await Queue.logs(of: id, redacted: redacted, on: connection))
        } catch {
            guard error.sqlState == "42501" else { throw error }
            return Traces()
        }
    }
}
