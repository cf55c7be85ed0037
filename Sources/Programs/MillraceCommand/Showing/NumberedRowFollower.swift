import MillraceJobs
import MillraceQueues
import Postgres

/// What a job's runs leave piece by piece, counted from 1.
protocol NumberedRow: Sendable {
    var number: Int64 { get }
    var json: JSONValue { get }
    /// For a person.
    func line(colors: Bool) -> String
}

/// Prints a job's rows, and with `--follow` those that come until it has ended.
struct NumberedRowFollower<Row: NumberedRow>: Sendable {
    private static var pause: Duration { .milliseconds(300) }

    let id: Int64
    let invocation: Invocation
    /// The name of their list in JSON.
    let list: String
    let whenNone: String
    /// The number before the first that is wanted.
    let after: Int64
    /// For who may read no secrets.
    var redacted = false
    /// A sentence about this number of missing rows.
    let cut: @Sendable (Int) -> String
    /// A page of rows above a number; none: there are no more.
    let read: @Sendable (Int64, Connection) async throws -> [Row]

    private var console: Console { invocation.console }

    func run(on connection: Connection) async throws -> ExitCode {
        let follows = invocation.parsed.isOn("follow")
        let deadline = invocation.deadline
        var last = after
        var all: [Row] = []
        while true {
            // Its state first: what its runs have left is there before their end is.
            guard let job = try await Queue.job(id, redacted: redacted, on: connection) else {
                throw Invocation.unknown(id)
            }
            while true {
                let rows = try await read(last, connection)
                guard let newest = rows.last else { break }
                say(rows, after: last)
                last = newest.number
                if console.format == .json { all += rows }
            }
            if !follows || job.state.isFinal { break }
            if let deadline, ContinuousClock.now >= deadline {
                finish(all)
                throw Invocation.gaveUp(id, job)
            }
            try await Task.sleep(for: Self.pause)
        }
        if last == after, console.format == .human { console.note("job \(id) \(whenNone)") }
        finish(all)
        return .done
    }

    private func say(_ rows: [Row], after last: Int64) {
        guard let first = rows.first else { return }
        let missing = Int(first.number - last - 1)
        switch console.format {
        case .human:
            if missing > 0 { console.note(cut(missing)) }
            for row in rows { console.print(row.line(colors: console.colorsOutput)) }
        case .jsonLines: console.list(list, rows.map(\.json), table: Table([]))
        case .json: break
        }
    }

    private func finish(_ all: [Row]) {
        if console.format == .json { console.list(list, all.map(\.json), table: Table([])) }
    }
}
