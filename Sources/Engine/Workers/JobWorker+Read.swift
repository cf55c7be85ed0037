import Postgres
import Queues
import Telemetry
import Threads

/// What claims took and did not bring.
extension JobWorker {
    /// Jobs with limits that were claimed loosely are read when the database has their leases for good, and start then: meanwhile the next
    /// claim is on its way.
    func readLoop() async {
        var backoff = Backoff()
        var random = SystemRandomNumberGenerator()
        var bytes = BatchSize(2 * options.bytes.claim, least: 0)
        while !Task.isCancelled {
            let parcels = desk.expected
            guard !parcels.isEmpty else {
                await desk.parcels.wait()
                continue
            }
            let session = desk.session
            let carry = bytes.size / parcels.reduce(1) { $0 + $1.ids.count }
            stalls.began(.reading)
            do throws(PostgresError) {
                let jobs = try await readLink.use { connection throws(PostgresError) in
                    try await Queue.readLeases(on: connection, session: session, of: parcels, carry: carry)
                }
                stalls.ended(.reading)
                backoff.reset()
                bytes.worked()
                let forgotten = desk.arrived(jobs, of: Set(parcels.map(\.number)))
                if !forgotten.isEmpty {
                    log.warning("a crash of the server has made claims undone", [("leases", "\(forgotten.count)")])
                    desk.requestReconcile()
                }
                startRuns()
            } catch {
                if error.isSlowness { bytes.failed() }
                if error.isUnanswerable { bytes.gaveWay() }
                complaints.say("what was claimed cannot be read yet; its jobs wait", error)
                try? await Task.sleep(for: backoff.next(using: &random))
            }
        }
    }

    /// How the reads of large jobs have gone.
    private struct ContentsState {
        var backoff = Backoff()
        var random = SystemRandomNumberGenerator()
        var jobs = BatchSize(UnreadJobs.most, least: 1)
        var bytes: BatchSize
        /// How often a job was asked for alone, in vain.
        var strikes: [LeaseToken: Int] = [:]
    }

    /// A job that was asked for so often alone, in vain, is given up.
    private static var mostStrikes: Int { 3 }

    /// The contents of jobs that claims had no room for: as many bytes at once as one statement may bring, and no more altogether than the worker
    /// may hold. Beside all else, for this may be slow.
    func contentsLoop() async {
        var state = ContentsState(bytes: BatchSize(options.bytes.read, least: 1 << 16))
        while !Task.isCancelled {
            let jobs = desk.nextUnread(most: state.jobs.size)
            guard !jobs.isEmpty else {
                await desk.unread.wait()
                continue
            }
            guard budget.isUnused || budget.free >= state.bytes.size else {
                await budget.freed.wait()
                continue
            }
            let (session, most) = (desk.session, state.bytes.size)
            stalls.began(.reading)
            do throws(PostgresError) {
                let read = try await contentsLink.use { connection throws(PostgresError) in
                    try await Queue.readContents(
                        on: connection, session: session, of: jobs, most: most, largest: options.bytes.job)
                }
                stalls.ended(.reading)
                state.backoff.reset()
                state.jobs.worked()
                state.bytes.worked()
                state.strikes = [:]
                take(in: read, of: jobs)
            } catch {
                await stumble(&state, error, over: jobs)
            }
        }
    }

    private func take(in read: [Int64: ContentsReading], of jobs: [Claimed]) {
        var whole: [Claimed] = []
        var refused: [(job: Claimed, error: String)] = []
        var lost: Set<Int64> = []
        for job in jobs {
            switch read[job.id] {
            case .contents(let contents): whole.append(job.holding(contents, budget.take(contents.size)))
            case .tooLarge(let bytes):
                refused.append(
                    (
                        job,
                        "its arguments, options, metadata and tags take \(bytes) bytes or more, and a worker takes \(options.bytes.job): it has not run"
                    ))
            case .lost: lost.insert(job.number)
            case nil: break
            }
        }
        settle(whole, refused: refused)
        if !lost.isEmpty {
            desk.lose(lost).settle(session: desk.session, log: log)
            desk.requestReconcile()
        }
    }

    private func settle(_ whole: [Claimed], refused: [(job: Claimed, error: String)]) {
        for (job, error) in refused {
            log.warning("a job died unread", [("job.id", "\(job.id)"), ("error", error)])
        }
        for lane in desk.read(whole, refused: refused) { wakeups.hint(lane) }
        startRuns()
    }

    /// Less at once; and a job that cannot even be read alone ends, or it would be in the way of all others for ever.
    private func stumble(_ state: inout ContentsState, _ error: PostgresError, over jobs: [Claimed]) async {
        complaints.say("the contents of large jobs cannot be read yet; they wait", error)
        if error.isSlowness || error.isUnanswerable {
            if let job = jobs.first, jobs.count == 1 {
                let token = LeaseToken(session: job.id, number: job.number)
                state.strikes[token, default: 0] += 1
                if state.strikes[token, default: 0] >= Self.mostStrikes {
                    settle([], refused: [(job, "its arguments, options, metadata and tags cannot be read: \(error)")])
                    state.strikes = [:]
                }
            }
            state.jobs.failed()
            state.bytes.failed()
        }
        try? await Task.sleep(for: state.backoff.next(using: &state.random))
    }
}

extension PostgresError {
    /// The answer is too much for the server or for us, or cannot be made of what is stored: asked for in smaller pieces most of it can be had.
    var isUnanswerable: Bool {
        guard let sqlState else { return false }
        return sqlState.hasPrefix("54") || sqlState == "53200" || sqlState.hasPrefix("XX") || sqlState.hasPrefix("22")
    }
}
