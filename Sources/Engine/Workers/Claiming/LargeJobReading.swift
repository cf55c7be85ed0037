import MillraceQueues
import Postgres
import Telemetry
import Threads

/// Reads the contents of large jobs, for which claims had no room: as many bytes at once as one statement may bring, and no more
/// altogether than the worker may hold. It has a connection of its own, for it may be slow.
actor LargeJobReading: SharingPart {
    nonisolated let shared: WorkerShared
    private let running: Running
    private let budget: ByteBudget

    init(_ shared: WorkerShared, _ running: Running) {
        self.shared = shared
        self.running = running
        budget = ByteBudget(shared.options.bytes.held)
    }

    /// How the reads of large jobs have gone.
    private struct ContentsState {
        /// What was asked for last.
        var asked: [Claimed] = []
        var jobs = BatchSize(UnreadJobs.most, least: 1)
        var bytes: BatchSize
        /// How often a job was asked for alone, in vain.
        var strikes: [LeaseToken: Int] = [:]

        mutating func worked() {
            jobs.worked()
            bytes.worked()
            strikes = [:]
        }
    }

    /// A job that was asked for so often alone, in vain, is given up.
    private static var mostStrikes: Int { 3 }

    func run() async {
        var reads = ContentsState(bytes: BatchSize(options.bytes.read, least: 1 << 16))
        await RetryingLoop.run { _ throws(PostgresError) in
            let jobs = state.nextUnread(most: reads.jobs.size)
            guard !jobs.isEmpty else {
                await state.unread.wait()
                return
            }
            guard budget.isUnused || budget.free >= reads.bytes.size else {
                await budget.freed.wait()
                return
            }
            let (session, most) = (state.session, reads.bytes.size)
            reads.asked = jobs
            stalls.began(.reading)
            let read = try await links.contents.use { connection throws(PostgresError) in
                try await Queue.readContents(
                    on: connection, session: session, of: jobs, most: most, largest: options.bytes.job)
            }
            stalls.ended(.reading)
            reads.worked()
            take(in: read, of: jobs)
        } failed: { error in
            stumble(&reads, error)
            return .pause
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
            state.lose(lost).settle(session: state.session, log: log)
            state.requestReconcile()
        }
    }

    private func settle(_ whole: [Claimed], refused: [(job: Claimed, error: String)]) {
        for (job, error) in refused {
            log.warning("a job died unread", [("job.id", "\(job.id)"), ("error", error)])
        }
        for lane in state.read(whole, refused: refused) { wakeups.hint(lane) }
        running.startRuns()
    }

    /// Less at once; and a job that cannot even be read alone ends, or it would be in the way of all others for ever.
    private func stumble(_ reads: inout ContentsState, _ error: PostgresError) {
        limitedLog.say("the contents of large jobs cannot be read yet; they wait", error)
        if error.isSlowness || error.isUnanswerable {
            if let job = reads.asked.first, reads.asked.count == 1 {
                let token = LeaseToken(session: job.id, number: job.number)
                reads.strikes[token, default: 0] += 1
                if reads.strikes[token, default: 0] >= Self.mostStrikes {
                    settle([], refused: [(job, "its arguments, options, metadata and tags cannot be read: \(error)")])
                    reads.strikes = [:]
                }
            }
            reads.jobs.failed()
            reads.bytes.failed()
        }
    }
}
