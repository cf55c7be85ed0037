import MillraceJobs
import MillraceQueues
import Postgres

/// The same deed to many jobs: named ones, or all that filters leave.
struct Bulk {
    let deed: Deed
    let invocation: Invocation

    private var console: Console { invocation.console }

    func run() async throws -> ExitCode {
        let ids = invocation.parsed.integers("id").map { Int64($0) }
        let isFiltered = try search != JobSearch() || wantsDead || invocation.parsed.string("state") != nil
        guard ids.isEmpty == isFiltered else {
            throw Failure(.misused, "\(words.verb) what?", hint: choice(isFiltered))
        }
        if deed == .retry, isFiltered, !wantsDead, invocation.parsed.string("state") == nil {
            throw Failure(
                .misused, "which jobs are to run again?",
                hint: "add --dead, or --state dead, cancelled, scheduled or retrying")
        }
        if wantsDead, let state = invocation.parsed.string("state"), state != "dead" {
            throw Failure(.misused, "--dead and --state \(state) exclude each other")
        }
        if try deadFilter.isOfDeadOnly, places != ["dead"], places != ["retrying"] {
            throw Failure(.misused, "--error, --since and --until are about failed jobs: add --state dead")
        }
        if isFlow, isFiltered || isFresh {
            throw Failure(
                .misused, "--flow is about the flows of named jobs: give ids, and neither filters nor --fresh")
        }
        return try await invocation.withSchema { connection in
            if let queue = invocation.filter.queue,
                let unknown = try await Invocation.unknown(.queue, [queue], on: connection)
            {
                throw unknown
            }
            if let kind = invocation.filter.kind,
                let unknown = try await Invocation.unknown(.kind, [kind], on: connection)
            {
                throw unknown
            }
            if isFlow { return try await flows(ids, on: connection) }
            return isFiltered ? try await matching(on: connection) : try await named(ids, on: connection)
        }
    }

    private var isFlow: Bool { deed != .delete && invocation.parsed.isOn("flow") }

    private var isFresh: Bool { deed == .retry && invocation.parsed.isOn("fresh") }

    /// Jobs to cancel are not dead, so the flags for dead jobs do not exist there.
    private var deadFilter: DeadFilter {
        get throws { deed == .cancel ? DeadFilter(invocation.filter) : try invocation.deadFilter }
    }

    private var wantsDead: Bool { deed == .retry && invocation.parsed.isOn("dead") }

    private var search: JobSearch {
        get throws {
            var search = try invocation.search
            if deed == .cancel { search.dead = DeadFilter(invocation.filter) }
            return search
        }
    }

    /// The states to look in, and `retrying`, which is not a state of its own.
    private var places: [String] {
        invocation.parsed.string("state") == "retrying" ? ["retrying"] : states.map(\.rawValue)
    }

    private var states: [JobState] {
        switch deed {
        case .retry: invocation.states ?? [.dead]
        case .cancel: invocation.states ?? [.scheduled, .blocked, .ready, .running]
        case .delete: invocation.states ?? [.succeeded, .cancelled, .dead]
        }
    }

    private var words: (verb: String, doing: String, done: String) {
        switch deed {
        case .retry: ("retry", "retrying", "retried")
        case .cancel: ("cancel", "cancelling", "cancelled")
        case .delete: ("delete", "deleting", "deleted")
        }
    }

    private func choice(_ isFiltered: Bool) -> String {
        isFiltered ? "give ids or filters, not both" : "give ids, or filters such as --queue; see --help"
    }

    private func counted(_ count: Int) -> String { Humane.count(count, "job") }

    // MARK: by flow

    private func flows(_ ids: [Int64], on connection: Connection) async throws -> ExitCode {
        let isDry = invocation.parsed.isOn("dry-run")
        var items: [JSONValue] = []
        for id in ids {
            guard try await Queue.job(id, on: connection) != nil else { throw Invocation.unknown(id) }
            let count: Int
            if isDry {
                count = try await Queue.flow(of: id, on: connection).count
            } else if deed == .cancel {
                count = try await Queue.cancelFlow(of: id, on: connection)
            } else {
                count = try await Queue.retryFlow(of: id, on: connection)
            }
            items.append(["id": .int(Int(id)), (isDry ? "jobs" : words.done): .int(count)])
            guard console.format == .human else { continue }
            console.print(
                isDry
                    ? "the flow of job \(id) has \(counted(count))"
                    : "\(words.done) \(counted(count)) of the flow of job \(id)")
        }
        if console.format != .human { console.list("flows", items, table: Table([])) }
        return .done
    }

    // MARK: by id

    private func named(_ ids: [Int64], on connection: Connection) async throws -> ExitCode {
        if invocation.parsed.isOn("dry-run") {
            console.show(["would": .string(words.verb), "jobs": .int(ids.count)]) {
                console.print("would \(words.verb) \(counted(ids.count))")
            }
            return .done
        }
        var items: [JSONValue] = []
        var code = ExitCode.done
        for start in stride(from: 0, to: ids.count, by: Queue.page) {
            let page = Array(ids[start..<min(start + Queue.page, ids.count)])
            for result in try await Queue.perform(
                deed, fresh: isFresh, named: true, on: page, connection: connection)
            {
                let (outcome, sentence, its) = try await judge(result, on: connection)
                items.append(["id": .int(Int(result.id)), "outcome": .string(outcome), "sentence": .string(sentence)])
                if code == .done { code = its }
                if its != .done {
                    console.failure(sentence)
                } else if console.format == .human {
                    console.print(sentence)
                }
            }
        }
        switch console.format {
        case .human: break
        case .json, .jsonLines: console.list("jobs", items, table: Table([]))
        }
        return code
    }

    private func judge(
        _ result: DeedResult, on connection: Connection
    ) async throws -> (outcome: String, sentence: String, code: ExitCode) {
        let id = result.id
        switch result.outcome {
        case .done:
            let job = deed == .cancel ? try await Queue.job(id, on: connection) : nil
            if job?.state == .running { return ("done", "job \(id) runs, and is told to stop", .done) }
            return ("done", "job \(id) \(words.done)", .done)
        case .notFound: return ("not_found", "there is no job \(id)", .notFound)
        case .refused(let reason): return ("refused", reason, .conflict)
        case .dropped(let reason): return ("args_dropped", reason, .conflict)
        case .nothing:
            guard let job = try await Queue.job(id, on: connection) else {
                return ("not_found", "there is no job \(id)", .notFound)
            }
            if deed == .cancel, job.state == .cancelled { return ("nothing", "job \(id) is cancelled already", .done) }
            return ("nothing", "job \(id) is \(job.state.rawValue): nothing to \(words.verb)", .conflict)
        }
    }

    // MARK: by filter

    private static let patience = Duration.seconds(600)

    private func matching(on connection: Connection) async throws -> ExitCode {
        let isDry = invocation.parsed.isOn("dry-run")
        let cap = 10_000
        var count = 0
        var causes: [DeadCause] = []
        let search = try search
        let isWide = try search.isWide || places == ["retrying"] || deadFilter.error != nil
        if isWide {
            for place in places {
                let sum = try await FoundJobs(state: place, search: search, invocation: invocation).sum(
                    cap: isDry ? nil : cap, on: connection)
                count += sum.count
                causes += sum.errors.map {
                    DeadCause(kind: $0.kind, error: $0.error, jobs: $0.jobs, dropped: $0.dropped)
                }
            }
        }
        for state in isWide ? [] : states {
            if state == .dead {
                causes = try await Queue.deadSummary(
                    deadFilter, cap: isDry ? nil : cap, on: connection, deadline: Self.patience)
                count += causes.reduce(0) { $0 + $1.jobs }
            } else {
                count += try await Queue.count(
                    state, invocation.filter, cap: isDry ? nil : cap, on: connection, deadline: Self.patience)
            }
        }
        if isDry { return tell(count, causes) }
        if count > 0 {
            try invocation.confirm("\(words.doing) \(count >= cap ? "10,000+ jobs" : counted(count))")
        }
        if deed == .retry { return try await operate(count > 0, on: connection) }
        var tally = Tally()
        let region = console.live()
        let shows = console.errors.isTerminal && console.verbosity > .quiet
        for state in places {
            var after: Int64?
            var isOver = false
            while !isOver {
                let ids: [Int64]
                if isWide {
                    let part = try await part(of: state, search, after: after, on: connection)
                    ids = part.ids
                    isOver = part.next == nil
                    after = part.next
                } else {
                    ids = try await page(of: JobState(rawValue: state) ?? .dead, after: after, on: connection)
                    isOver = ids.isEmpty
                    after = ids.last
                }
                if ids.isEmpty { continue }
                let results = try await Queue.perform(
                    deed, fresh: isFresh, on: ids, connection: connection, deadline: Self.patience)
                for result in results {
                    tally.add(result.outcome)
                }
                if shows { region.update(["\(words.done) \(counted(tally.done))"]) }
            }
        }
        if shows { region.update([]) }
        return tell(tally)
    }

    /// Many jobs are retried by an operation, which can be taken back.
    private func operate(_ isAny: Bool, on connection: Connection) async throws -> ExitCode {
        guard isAny else { return tell(Tally()) }
        let run = OperationRun(invocation)
        let row = try await run.whole(
            isFresh ? "retry_fresh" : "retry", state: places[0], pace: rate, on: connection)
        let dropped = row.refused > 0 ? try await Queue.withoutArguments(of: row.id, on: connection) : 0
        let tally = Tally(done: row.done, moved: row.nothing, refused: row.refused - dropped, dropped: dropped)
        return tell(tally, operation: row.id)
    }

    private func tell(_ tally: Tally, operation: Int64? = nil) -> ExitCode {
        var json: [JSONValue.Member] = [
            .init(key: words.done, value: .int(tally.done)),
            .init(key: "untouched", value: .int(tally.moved + tally.refused + tally.dropped)),
            .init(key: "refused", value: .int(tally.refused)), .init(key: "without_args", value: .int(tally.dropped)),
        ]
        if deed == .retry { json.append(.init(key: "operation", value: JSONValue(operation.map { Int($0) }))) }
        console.show(.object(json)) {
            console.print("\(words.done) \(counted(tally.done))")
            if tally.moved > 0 { console.print("\(counted(tally.moved)) had moved on") }
            if tally.refused > 0 {
                let why = deed == .retry ? "millrace operations show \(operation ?? 0) --which refused" : "they run"
                console.print("\(counted(tally.refused)) refused: \(why)")
            }
            if tally.dropped > 0 {
                console.print("\(counted(tally.dropped)) cannot run again: their arguments are no longer kept")
            }
            if let operation, tally.done > 0 { console.note("millrace operations undo \(operation) undoes it") }
        }
        return .done
    }

    /// The results for many jobs.
    private struct Tally {
        var done = 0
        var moved = 0
        var refused = 0
        var dropped = 0

        mutating func add(_ outcome: DeedResult.Outcome) {
            switch outcome {
            case .done: done += 1
            case .nothing, .notFound: moved += 1
            case .refused: refused += 1
            case .dropped: dropped += 1
            }
        }
    }

    private func tell(_ count: Int, _ causes: [DeadCause]) -> ExitCode {
        let dropped = deed == .retry ? causes.reduce(0) { $0 + $1.dropped } : 0
        var json: [JSONValue.Member] = [
            .init(key: "would", value: .string(words.verb)), .init(key: "jobs", value: .int(count)),
        ]
        if places == ["dead"] || places == ["retrying"] {
            json.append(.init(key: "without_args", value: .int(dropped)))
            json.append(.init(key: "causes", value: .array(causes.map(\.json))))
        }
        console.show(.object(json)) {
            console.print("would \(words.verb) \(counted(count))")
            if dropped > 0 {
                console.print("\(counted(dropped)) of them cannot run: their arguments are no longer kept")
            }
            if !causes.isEmpty { console.print(DeadCause.table(causes)) }
        }
        return .done
    }

    private func part(
        of state: String, _ search: JobSearch, after: Int64?, on connection: Connection
    ) async throws -> JobSearchPart {
        try Task.checkCancellation()
        return try await Queue.find(
            state, search, after: after, limit: Queue.page, on: connection,
            deadline: Self.patience)
    }

    private var rate: Int? { deed == .retry ? invocation.parsed.integer("rate") : nil }

    private func page(of state: JobState, after: Int64?, on connection: Connection) async throws -> [Int64] {
        try Task.checkCancellation()
        guard state == .dead else {
            return try await Queue.ids(
                state, invocation.filter, after: after, on: connection, deadline: Self.patience)
        }
        return try await Queue.deadIDs(
            deadFilter, after: after, limit: Queue.page, on: connection,
            deadline: Self.patience)
    }
}
