import FoundationEssentials
import MillraceJobs
import MillraceQueues
import Postgres

/// Enqueues one job of each harmless kind and follows them to their ends.
struct Tour: Sendable {
    struct Stop: Sendable {
        let id: Int64
        let kind: String
        let why: String
    }

    let console: Console
    let connection: Connection

    /// The way a job takes here, in the words a newcomer needs.
    func run() async throws -> Bool {
        let stops = try await enqueue()
        let live = console.live(on: console.output)
        let began = ContinuousClock.now
        while true {
            var rows: [(stop: Stop, row: JobRow?)] = []
            for stop in stops { rows.append((stop, try await Queue.row(of: stop.id, on: connection))) }
            live.update(table(rows).lines(width: console.output.columns, colors: console.colorsOutput))
            if rows.allSatisfy({ $0.row?.state.isFinal ?? false }) { break }
            guard began.duration(to: .now) < .seconds(60) else {
                live.finish()
                console.failure("the jobs did not end within a minute; see the worker's log above")
                return false
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        live.finish()
        return true
    }

    private func enqueue() async throws(PostgresError) -> [Stop] {
        var stops: [Stop] = []
        func add(_ kind: String, _ args: String, _ why: String, in delay: Double? = nil) async throws(PostgresError) {
            var job = NewJob(kind: kind, args: Array(args.utf8))
            job.delay = delay.map { .seconds($0) }
            job.tags = ["tour"]
            stops.append(Stop(id: try await Queue.enqueue(job, on: connection), kind: kind, why: why))
        }
        try await add("practice.nothing", "{}", "the smallest job there is")
        try await add("practice.echo", #"{"hi": 1}"#, "arguments are any JSON")
        try await add("practice.sleep", #"{"ms": 1500}"#, "works for a second and a half")
        try await add("practice.spin", #"{"ms": 300}"#, "keeps a slot busy, heeding nobody")
        try await add("practice.steps", #"{"steps": 4, "ms": 400}"#, "works in recorded steps, and says how far it is")
        try await add("practice.fail", #"{"times": 2}"#, "fails twice, is retried, then succeeds")
        try await add("practice.echo", #"{"later": true}"#, "scheduled three seconds ahead", in: 3)
        try await add("practice.echo", #"{"never": true}"#, "scheduled for tomorrow, and cancelled", in: 86_400)
        if let last = stops.last { _ = try await Queue.cancel(last.id, on: connection) }
        return stops
    }

    private func table(_ rows: [(stop: Stop, row: JobRow?)]) -> Table {
        var table = Table([
            .init("job", .trailing), .init("kind"), .init("state"), .init("run", .trailing),
            .init("what it shows", shrinks: true),
        ])
        for (stop, row) in rows {
            table.add([
                .init("\(stop.id)"), .init(stop.kind), Self.cell(row?.state), .init("\(row?.attempt ?? 0)"),
                .init(Self.says(row) ?? stop.why, .dim),
            ])
        }
        return table
    }

    /// The progress of a running job.
    private static func says(_ row: JobRow?) -> String? {
        guard let row, row.state == .running else { return nil }
        return row.progress?.sentence
    }

    private static func cell(_ state: JobState?) -> Table.Cell {
        switch state {
        case .succeeded: .init("succeeded", .green)
        case .running: .init("running", .cyan)
        case .scheduled: .init("scheduled", .yellow)
        case .dead: .init("dead", .red)
        case .cancelled: .init("cancelled", .dim)
        case .ready, .blocked: .init(state?.rawValue ?? "", .plain)
        case nil: .init("?", .red)
        }
    }
}
