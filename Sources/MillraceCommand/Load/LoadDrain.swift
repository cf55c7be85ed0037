import Postgres

extension Command {
    static let loadDrain = Command(
        ["load", "drain"],
        summary: "Measure how fast one worker works through waiting jobs",
        discussion: """
            Enqueues practice.nothing jobs in bulk, then runs a worker in this process until all have ended, history kept. Prints \
            jobs per second, and the processor time and memory of this process. Use a database of its own.
            """,
        flags: [
            .single(
                "jobs", "N", .integer(1...100_000_000), environment: .none, fallback: "500000", help: "Jobs to drain."),
            .toggle("strict", environment: .none, help: "Exit 1 when a bar is missed."),
            Setting.slots.flag, Setting.directURL.flag,
        ],
        examples: [Example("millrace load drain --jobs 500000", "what the README quotes")]
    ) { invocation in
        let jobs = invocation.parsed.integer("jobs") ?? 500_000
        let options = try invocation.connectionOptions()
        do {
            let connection = try await Connection.open(options, name: "load")
            let draining = Draining(invocation: invocation, connection: connection, jobs: jobs)
            try await draining.enqueue()
            let result = try await draining.drain()
            await connection.close()
            let rate = Double(jobs) / result.seconds
            return invocation.report(
                "drain",
                [
                    .atLeast("jobs per second", 100_000, measured: rate, unit: "/s"),
                    .atMost(
                        "processor time of the worker, per job", 8, measured: result.processor / Double(jobs) * 1e6,
                        unit: "µs"),
                    .atMost("resident memory at the most", 60, measured: Draining.residentMegabytes, unit: "MB"),
                ],
                figures: [
                    ("jobs", .init(jobs)), ("finished", .init(result.finished)), ("seconds", .double(result.seconds)),
                    ("jobs_per_second", .double(rate)),
                ])
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
    }
}
