import Postgres
import TestSupport

/// What callers and workers were told, and what must be true because of it.
extension Interleaving {
    /// A run as its worker knows it.
    struct Run {
        enum State: Equatable {
            case live
            /// This session has said that it ends, and has no answer or no commit yet.
            case ending(Int)
            case over
            /// Its lease is lost: another run has the job, or will have it.
            case lost
        }

        var session: Int
        var number: Int
        var job: Int
        var kind: Int
        var queue: Int
        var attempt: Int
        var crashes: Int
        var isKeyed: Bool
        var hasExpired: Bool
        /// The slots that it holds.
        var gates: [Int]
        var state = State.live

        var token: String { "\(String(session, radix: 16))-\(number)-\(job)" }
        var isOpen: Bool { state != .over && state != .lost }
    }

    struct Known {
        /// What callers were told that it is in the queue.
        var jobs: [Int] = []
        var recent: [Int] = []
        /// Made by runs, and forgotten if these do not succeed.
        var spawned: Set<Int> = []
        var deleted: Set<Int> = []
        var runs: [Run] = []
        var operations: [Int] = []
        var signals = 0
        /// The last session of workers, each one's own, how often each has beaten, and the last number of a claim.
        var sessions = 0
        var session: [String: Int] = [:]
        var beats: [Int: Int] = [:]
        var numbers: [Int: Int] = [:]
        /// Which beats a worker has seen of others.
        var seen: [String: [Int: Int]] = [:]
        /// Leases that were given up.
        var given: Set<String> = []
    }

    /// What an answer says.
    enum Reading {
        case nothing, job, spawned, deleted(Int), operation
        case completes(Int), waits(Int), ends([Int])
        case claim(Int), beat(Int), watch(String), given(Int, Int)
        /// `beats`: how many the session had been told of when this was said.
        case rescue(Int, seen: Int?, beats: Int)

        /// Of what is told at the same time, ends come first.
        var rank: Int {
            switch self {
            case .rescue, .given: 0
            case .completes, .waits, .ends, .beat: 1
            case .nothing, .job, .spawned, .deleted, .operation, .watch: 2
            case .claim: 3
            }
        }
    }

    mutating func learn(_ told: [(Int, Reading, [String])]) async throws {
        for (session, reading, rows) in told.enumerated().sorted(by: {
            ($0.element.1.rank, $0.offset) < ($1.element.1.rank, $1.offset)
        })
        .map(\.element) {
            try await learn(reading, rows, session)
        }
        // Where a transaction was rolled back, its runs go on.
        for index in known.runs.indices {
            guard case .ending(let session) = known.runs[index].state else { continue }
            if !sessions[session].isOpen, sessions[session].flight == nil { known.runs[index].state = .live }
        }
    }

    private mutating func learn(_ reading: Reading, _ rows: [String], _ session: Int) async throws {
        let numbers = rows.compactMap { Int($0) }
        switch reading {
        case .nothing: break
        case .job: for job in numbers { note(job) }
        case .spawned:
            let ends = (rows.first ?? "").split(separator: " ").compactMap { Int($0) }
            guard ends.count == 2 else { return }
            for job in ends[0]...ends[1] {
                note(job)
                known.spawned.insert(job)
            }
        case .deleted(let job): if rows == ["true"] { known.deleted.insert(job) }
        case .operation: known.operations += numbers
        case .completes(let run): ended(run, isLive: rows == ["true"])
        case .waits(let run): if rows == ["null"] { ended(run, isLive: true) }
        case .ends(let runs): for run in runs { ended(run, isLive: numbers.contains(known.runs[run].number)) }
        case .claim(let claimer): for row in rows { claimed(row, claimer) }
        case .watch(let name):
            for row in rows {
                let fields = row.split(separator: " ").compactMap { Int($0) }
                known.seen[name, default: [:]][fields[0]] = fields[1]
            }
        case .given(let session, let number): known.given.insert("\(session) \(number)")
        case .beat(let beaten): try await beat(beaten, stands: rows == ["true"], session)
        case .rescue(let rescued, let seen, let beats):
            if let seen, seen < beats, numbers.first ?? 0 > 0 {
                wrong.append("session \(rescued) was rescued, and had beaten since it was looked at")
            }
            try await lose(rescued)
        }
    }

    private mutating func note(_ job: Int) {
        if !known.jobs.contains(job) { known.jobs.append(job) }
        touch(job)
    }

    private mutating func claimed(_ row: String, _ session: Int) {
        let fields = row.split(separator: " ").compactMap { Int($0) }
        guard fields.count >= 8 else {
            wrong.append("a claim says \(row)")
            return
        }
        let run = Run(
            session: session, number: fields[1], job: fields[0], kind: fields[2], queue: fields[3], attempt: fields[4],
            crashes: fields[5],
            isKeyed: fields[6] == 1, hasExpired: fields[7] == 1, gates: Array(fields[8...]))
        for other in known.runs where other.job == run.job && other.isOpen {
            wrong.append("job \(run.job) has two live runs: \(other.token) and \(run.token)")
        }
        known.runs.append(run)
        touch(run.job)
    }

    private mutating func ended(_ run: Int, isLive: Bool) {
        let token = known.runs[run].token
        switch known.runs[run].state {
        case .lost where isLive: wrong.append("the end of run \(token) was accepted, and its lease is lost")
        case .over where isLive: wrong.append("run \(token) has ended twice")
        case .live where !isLive, .ending where !isLive:
            wrong.append("the end of run \(token) was refused, and its lease was not lost")
        default: break
        }
        known.runs[run].state = isLive ? .over : .lost
    }

    /// A worker that hears of its rescue begins a session.
    private mutating func beat(_ session: Int, stands: Bool, _ worker: Int) async throws {
        guard !stands else {
            known.beats[session, default: 0] += 1
            return
        }
        try await lose(session)
        guard known.session[sessions[worker].name] == session else { return }
        try await openSession(worker)
        trace.append("    \(sessions[worker].name) begins session \(known.sessions)")
    }

    /// What a rescue has left: leases that a handler's transaction held.
    private mutating func lose(_ session: Int) async throws {
        let held = Set(
            try await watcher.column(
                "select concat_ws(' ', number, unnest(ids)) from millrace.lease where session = \(session)"))
        for index in known.runs.indices where known.runs[index].session == session && known.runs[index].state != .over {
            if !held.contains("\(known.runs[index].number) \(known.runs[index].job)") {
                known.runs[index].state = .lost
            }
        }
    }

    // MARK: What must be true

    /// Of what is committed now.
    mutating func check() async throws {
        wrong += try await watcher.faults() + watcher.deaf()
        wrong += try await watcher.column(
            """
            select 'job ' || job || ' has succeeded ' || count(*) || ' times' from public.succeeded group by job having count(*) > 1
            union all
            select count(*) || ' jobs of ' || coalesce('tenant ' || j.tenant, 'key ' || j.limit_key) || ' run at once' from (\(SequenceWorld.unfinished)) r
              join millrace.job j on j.id = r.job where j.tenant = 'a' or j.limit_key = 'l'
             group by grouping sets ((j.tenant), (j.limit_key)) having count(*) > 1 and (j.tenant = 'a' or j.limit_key = 'l')
            """)
        let leased = Set(
            try await watcher.column("select concat_ws(' ', session, number, job) from (\(SequenceWorld.unfinished)) r")
        )
        for run in known.runs where run.state == .live && !leased.contains("\(run.session) \(run.number) \(run.job)") {
            wrong.append("run \(run.token) is live, and has no lease")
        }
        guard wrong.isEmpty else { throw Fault(sentences: wrong) }
    }

    /// Once all has come to its end.
    func verdicts() async throws -> [String] {
        let left =
            try await watcher.endless()
            + watcher.column(
                """
                select 'nobody reads the note of the end of job ' || e.pred from millrace.ending e
                union all select 'nobody reads the note that job ' || u.job || ' has left its key' from millrace.unique_ended u
                union all select 'nobody closes lease ' || l.number || ' of session ' || l.session from millrace.lease l
                """)
        let ended = Set(try await watcher.column("select id from millrace.history where outcome in (1, 2, 3)"))
        let missing = known.jobs.filter {
            !ended.contains("\($0)") && !known.deleted.contains($0) && !known.spawned.contains($0)
        }
        return left + missing.map { "job \($0) was enqueued, and has no end" }
    }
}
