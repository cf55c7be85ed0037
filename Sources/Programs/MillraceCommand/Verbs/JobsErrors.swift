import FoundationEssentials
import MillraceJobs
import MillraceQueues
import Postgres

extension Command {
    static let jobsErrors = Command(
        ["jobs", "errors"],
        summary: "List the errors of failed jobs, similar ones together",
        discussion: """
            Groups dead jobs, and jobs that wait for a retry, by their last error: how many, since when, until when, \
            and one of them as an example. Numbers in an error are shown as #, because the same trouble rarely has the \
            same numbers.
            """,
        flags: [
            .single("state", "STATE", .choice(["dead", "retrying"]), help: "Only jobs in this state.")
        ] + JobFlags.filter + JobFlags.ofOwner + JobFlags.ofDead,
        examples: [
            Example("millrace jobs errors", "what goes wrong"),
            Example("millrace jobs errors --queue mail --since 1h", "lately, in one queue"),
            Example("millrace jobs retry --state retrying --error 'timed out'", "then: once more, at once"),
        ]
    ) { invocation in
        let search = try invocation.search
        let states = invocation.parsed.string("state").map { [$0] } ?? ["dead", "retrying"]
        let found = try await invocation.withSchema { connection in
            var found: [(state: String, error: JobError)] = []
            for state in states {
                let sum = try await FoundJobs(state: state, search: search, invocation: invocation).sum(on: connection)
                found += sum.errors.map { (state, $0) }
            }
            return found.sorted { ($0.error.jobs, $0.error.lastAt) > ($1.error.jobs, $1.error.lastAt) }
        }
        invocation.console.list("errors", found.map { $0.error.json(state: $0.state) }, table: JobError.table(found))
        return .done
    }
}

/// All jobs that a search finds, part by part, with progress.
struct FoundJobs {
    let state: String
    let search: JobSearch
    let invocation: Invocation

    private static let patience = Duration.seconds(600)

    /// - Parameter cap: the count stops here.
    func sum(cap: Int? = nil, on connection: Connection) async throws -> (count: Int, errors: [JobError]) {
        var sums: [[String]: JobError] = [:]
        var count = 0
        try await each(on: connection) { ids in
            count += ids.count
            if state == "dead" || state == "retrying" {
                for error in try await Queue.errors(of: ids, on: connection, deadline: Self.patience) {
                    sums[[error.kind, error.error], default: error.without].add(error)
                }
            }
            return cap.map { count < $0 } ?? true
        }
        return (min(count, cap ?? .max), sums.values.sorted { ($0.jobs, $0.lastAt) > ($1.jobs, $1.lastAt) })
    }

    /// - Parameter body: gets a page of ids, newest first; false ends the walk.
    func each(on connection: Connection, _ body: ([Int64]) async throws -> Bool) async throws {
        let console = invocation.console
        let region = console.live()
        let shows = console.errors.isTerminal && console.verbosity > .quiet
        var after: Int64?
        var looked = 0
        repeat {
            try Task.checkCancellation()
            let part = try await Queue.find(state, search, after: after, on: connection, deadline: Self.patience)
            looked += part.looked
            if shows { region.update(["looked at \(Humane.count(looked, "\(state) job"))"]) }
            after = part.next
            if !part.ids.isEmpty, try await !body(part.ids) { break }
        } while after != nil
        if shows { region.update([]) }
    }
}

extension JobError {
    fileprivate var without: JobError {
        var none = self
        none.jobs = 0
        none.dropped = 0
        return none
    }

    func json(state: String) -> JSONValue {
        [
            "state": .string(state), "kind": .string(kind), "error": .string(error), "jobs": .int(jobs),
            "without_args": .int(dropped), "first_at": JSONValue(firstAt), "last_at": JSONValue(lastAt),
            "example": .int(Int(example)),
        ]
    }

    static func table(_ found: [(state: String, error: JobError)]) -> Table {
        var table = Table(
            [
                Table.Column("jobs", .trailing), Table.Column("state"), Table.Column("kind", shrinks: true),
                Table.Column("first"), Table.Column("last"), Table.Column("example", .trailing),
                Table.Column("error", shrinks: true),
            ], whenEmpty: "no job is dead or waits for a retry")
        for (state, error) in found {
            table.add([
                Table.Cell(Humane.count(error.jobs), .bold), Table.Cell(state), Table.Cell(error.kind),
                Table.Cell(Humane.relative(error.firstAt), .dim), Table.Cell(Humane.relative(error.lastAt)),
                Table.Cell("\(error.example)"), Table.Cell(DisplayWidth.harmless(error.error)),
            ])
        }
        return table
    }
}

extension Invocation {
    /// The list by filters that only a search knows.
    func listFound(_ states: [String], _ search: JobSearch, after: Int64?, limit: Int) async throws -> ExitCode {
        let jobs = try await withSchema { connection in
            var found: [Int64: JobDetail] = [:]
            for state in states {
                var next = after
                var count = 0
                repeat {
                    try Task.checkCancellation()
                    let part = try await Queue.find(
                        state, search, after: next, limit: limit - count, on: connection)
                    for id in part.ids {
                        // A job that moved meanwhile is shown where it is now.
                        if let job = try await Queue.job(id, on: connection) { found[id] = job }
                    }
                    count += part.ids.count
                    next = part.next
                } while next != nil && count < limit
            }
            return Array(found.values.sorted { $0.id > $1.id }.prefix(limit))
        }
        console.list("jobs", jobs.map(\.json), table: JobDetail.table(jobs))
        if jobs.count == limit, console.format == .human, let last = jobs.last {
            console.note("more may follow: --after \(last.id)")
        }
        return .done
    }
}
