import Encryption
import MillraceJobs
import MillraceQueues
import Postgres

extension Command {
    static let jobsList = Command(
        ["jobs", "list"],
        summary: "List jobs, newest first",
        discussion:
            "Without --state jobs of every state. The next page begins below the last id: pass it with --after.",
        flags: [
            .single(
                "state", "STATE", .choice(JobState.allCases.map(\.rawValue) + ["retrying", "waiting"]),
                help:
                    "Only jobs in this state; retrying: after a run that failed; waiting: in the middle of their work.")
        ] + JobFlags.filter + JobFlags.ofOwner + JobFlags.ofDead + JobFlags.ofCause + [
            .single("limit", "N", .integer(1...10_000), fallback: "50", help: "Show at most this many."),
            .single("after", "ID", .jobID, environment: .none, help: "Only jobs older than this one."),
        ],
        examples: [
            Example("millrace jobs list --state dead", "what needs a look"),
            Example("millrace jobs list --state dead --error 'timed out' --since 2h", "what died of that, lately"),
            Example("millrace jobs list --queue mail --limit 500 --jsonl", "for a script"),
            Example(
                "millrace jobs list --kind receipt.send --field order.id=42", "by a searchable field of its arguments"),
        ]
    ) { invocation in
        let limit = invocation.parsed.integer("limit") ?? 50
        let after = invocation.parsed.integer("after").map { Int64($0) }
        let states = invocation.states ?? JobState.allCases
        let isRetrying = invocation.parsed.string("state") == "retrying"
        let isWaiting = invocation.parsed.string("state") == "waiting"
        if try invocation.deadFilter.isOfDeadOnly, states != [.dead], !isRetrying {
            throw Failure(
                .misused, "--error, --since and --until are about failed jobs: add --state dead or --state retrying")
        }
        let search = try invocation.search
        if let field = search.field, let kind = search.dead.jobs.kind,
            search == JobSearch(DeadFilter(JobFilter(kind: kind)), field: field),
            invocation.states == nil, !isRetrying, !isWaiting
        {
            return try await invocation.list(kind, with: field, after: after, limit: limit)
        }
        if isRetrying || isWaiting || search.isWide {
            let failed =
                search.group != nil && invocation.states == nil ? ["dead", "retrying"] : states.map(\.rawValue)
            return try await invocation.listFound(
                isRetrying ? ["retrying"] : isWaiting ? ["waiting"] : failed, search, after: after, limit: limit)
        }
        let jobs = try await invocation.withSchema { connection in
            var found: [Int64: JobDetail] = [:]
            for state in states {
                // A job that moved between two looks was seen twice: the later look counts.
                for job in try await invocation.jobs(state, after: after, limit: limit, on: connection) {
                    found[job.id] = job
                }
            }
            return Array(found.values.sorted { $0.id > $1.id }.prefix(limit))
        }
        invocation.console.list("jobs", jobs.map(\.json), table: JobDetail.table(jobs))
        if jobs.count == limit, invocation.console.format == .human, let last = jobs.last {
            invocation.console.note("more may follow: --after \(last.id)")
        }
        return .done
    }

    static let jobsShow = Command(
        ["jobs", "show"],
        summary: "Show everything about a job, and why it does not run",
        arguments: [Argument("id", .one, .jobID, help: "the job's id")],
        flags: [
            .toggle("decrypt", environment: .none, help: "Show encrypted arguments in the clear."),
            .toggle(
                "redacted", environment: .none,
                help: "Hide secrets: what the kind's redactions cover, and values of names such as password."),
            Setting.encryptionKeys.flag,
        ],
        examples: [
            Example("millrace jobs show 42", "its arguments, its place, every error, its steps, its last lines"),
            Example("millrace jobs show 42 --decrypt", "its encrypted arguments too, for who has the key"),
            Example("millrace jobs show 42 --redacted", "for a ticket or a chat"),
        ]
    ) { invocation in
        let id = Int64(invocation.parsed.integer("id") ?? 0)
        let redacted = invocation.parsed.isOn("redacted")
        if redacted, invocation.parsed.isOn("decrypt") {
            throw Failure(.misused, "--redacted and --decrypt exclude each other")
        }
        let keys = invocation.parsed.isOn("decrypt") ? try invocation.neededKeys() : nil
        var (job, traces, flow, why) = try await invocation.withSchema { connection in
            guard let job = try await Queue.job(id, redacted: redacted, on: connection) else {
                throw Invocation.unknown(id)
            }
            let flow = try await Queue.flowTree(of: id, on: connection)
            let why =
                job.state == .succeeded ? nil : try await Queue.why(id, on: connection).map { try JSONValue.read($0) }
            let traces = try await invocation.traces(of: id, redacted: redacted, on: connection)
            return (job, traces, flow, why)
        }
        if let keys, let args = job.args { job.args = try invocation.open(args, of: job, keys: keys) }
        let colors = invocation.console.colorsOutput
        let members =
            job.members + traces.members + [
                .init(key: "flow", value: flow.json), .init(key: "why", value: why ?? .null),
            ]
        invocation.console.show(.object(members)) {
            let lines =
                job.lines(colors: colors, why: why) + flow.lines(current: id, colors: colors)
                + traces.lines(colors: colors)
            for line in lines { invocation.console.print(line) }
        }
        return .done
    }

    static let jobsWatch = Command(
        ["jobs", "watch"],
        summary: "Follow a job to its end",
        discussion: """
            Shows the progress that the job's run reports. Exit 0 when it succeeded, 8 when it died or was cancelled, \
            7 when --timeout passed first. It waits through an outage of the database. With --jsonl every change is a \
            line.
            """,
        arguments: [Argument("id", .one, .jobID, help: "the job's id")],
        examples: [Example("millrace jobs watch 42 --timeout 5m", "and give up after five minutes")]
    ) { invocation in
        let id = Int64(invocation.parsed.integer("id") ?? 0)
        let deadline = invocation.deadline
        let console = invocation.console
        let options = try invocation.connectionOptions()
        return try await invocation.withSchema { connection in
            var follower = Follower(id: id, options: options, console: console, deadline: deadline)
            follower.onChange = { job in
                switch console.format {
                case .jsonLines: console.show(job.json) {}
                case .human where !console.errors.isTerminal && !job.state.isFinal:
                    console.note(
                        "job \(id) is \(job.state.rawValue)" + (job.attempt > 0 ? ", attempt \(job.attempt)" : "")
                            + (job.crashes > 0 ? ", crashes \(job.crashes)" : "")
                            + (job.advance.map { ", \(DisplayWidth.harmless($0.sentence))" } ?? ""))
                case .human, .json: break
                }
            }
            switch try await follower.follow(on: connection) {
            case .gone: throw Invocation.unknown(id)
            case .timedOut(let job):
                if console.format == .json, let job { console.show(job.json) {} }
                throw Invocation.gaveUp(id, job)
            case .ended(let job):
                if console.format == .json { console.show(job.json) {} }
                if console.format == .human { console.print(job.ending, job.style) }
                return ExitCode(awaiting: job.state)
            }
        }
    }
}

extension Invocation {
    fileprivate func open(_ args: [UInt8], of job: JobDetail, keys: Keyring) throws(Failure) -> [UInt8] {
        do {
            return try keys.open(args, kind: job.kind)
        } catch {
            throw Failure(.failed, "job \(job.id): \(error.description)")
        }
    }
}

enum JobFlags {
    static let filter: [CommandFlag] = [
        .single("queue", "NAME", .queueName, help: "Only jobs of this queue."),
        .single("kind", "KIND", .kindName, help: "Only jobs of this kind."),
        .single("tag", "TAG", help: "Only jobs with this tag."),
    ]
}

extension Invocation {
    var filter: JobFilter {
        JobFilter(queue: parsed.string("queue"), kind: parsed.string("kind"), tag: parsed.string("tag"))
    }

    var states: [JobState]? {
        parsed.string("state").flatMap(JobState.init).map { [$0] }
    }

    fileprivate func jobs(
        _ state: JobState, after: Int64?, limit: Int, on connection: Connection
    ) async throws -> [JobDetail] {
        var found: [JobDetail] = []
        var after = after
        while found.count < limit {
            let wanted = min(limit - found.count, Queue.page)
            let page =
                state == .dead
                ? try await Queue.deadJobs(deadFilter, after: after, limit: wanted, on: connection)
                : try await Queue.jobs(state, filter, after: after, limit: wanted, on: connection)
            found += page
            // A page may be short if jobs moved meanwhile; only an empty one is the end.
            guard let last = page.last else { break }
            after = last.id
        }
        return found
    }
}
