import Digests
import MillraceQueues
import Postgres
import Synchronization
import Telemetry
import Threads

/// Decides when a worker sleeps, and where: at the buckets of its queues. While it sleeps, `SleepLock` makes enqueuers notify it, and
/// while it is awake nobody does. One sleeping worker for each bucket, elected by lock D, holds lock K.
///
/// No actor: the claim loop tells it each time that it wakes or sleeps, from another thread and without a wait.
final class QueueSleepLock: WorkerPart {
    private struct State {
        var asleep = false
        var holds = false
        /// Somebody looks for it while it sleeps, or it is told of each job.
        var isCovered = false
        /// Many jobs come, and it is to look by itself.
        var isAsked = false
        /// Others look.
        var isRelieved = false
        var waiting: Connection?
        var waitingSince: ContinuousClock.Instant?
        var wakes: [ContinuousClock.Instant] = []
    }

    /// K and D; see sql/locks.md. Enqueuers may have long transactions, and a job must start as soon as the last of them has committed.
    private static let rules = SleepLock.Rules(
        lock: 1_297_239_619, election: .eachPlace(1_297_239_620), patience: .milliseconds(200), waitsForLast: true)

    private let link: LoopConnection
    private let wakeups: Wakeups
    private let log: Log
    private let state = Mutex(State())
    private let buckets: Mutex<Set<Int32>>
    private let poll: Duration
    /// Holds the locks for this worker, and for the others of its host.
    private let waker: WakerClient?
    let signal = Wakeup()

    init(link: LoopConnection, wakeups: Wakeups, poll: Duration, waker: WakerClient? = nil, log: Log) {
        self.waker = waker
        self.link = link
        self.wakeups = wakeups
        self.poll = poll
        self.log = log
        buckets = Mutex(Set(0..<64))
        waker?.heed { [weak self] in self?.obey($0) }
    }

    private func obey(_ order: WakerOrder) {
        switch order {
        case .look: wakeups.lookEverywhere()
        case .watch:
            state.withLock { $0.isAsked = true }
            wakeups.signal.fire()
        case .enough: state.withLock { $0.isRelieved = true }
        case .covered: state.withLock { $0.isCovered = true }
        case .uncovered: state.withLock { $0.isCovered = false }
        }
    }

    /// nil: all queues, also those that do not exist yet.
    func serve(queues: [Int32]?) {
        buckets.withLock { $0 = Set(queues.map { $0.map { $0 & 63 } } ?? Array(0..<64)) }
    }

    /// Which jobs the worker takes.
    func takes(_ what: String) {
        waker?.takes(SHA256Digest.of(Array(what.utf8)).prefix(12).map { String($0, radix: 16) }.joined(separator: "-"))
    }

    /// The worker sleeps, and will be woken for each job that is not taken by others.
    var isCovered: Bool { state.withLock { $0.holds || $0.asleep && $0.isCovered } }

    /// The worker looks by itself, and others do as well: it may sleep.
    var isRelieved: Bool { state.withLock { $0.isRelieved } }

    /// Whether the worker, which has slept, is to look by itself for a while.
    func takeAsked() -> Bool {
        let isAsked = state.withLock { state in
            defer { state.isAsked = false }
            return state.isAsked
        }
        if isAsked { busy() }
        return isAsked
    }

    /// While we queue behind enqueuers whose transactions are open: how often to look meanwhile. They saw nobody asleep and will
    /// notify nobody, and the lock is ours only when the last of them has committed.
    var impatience: Duration? {
        state.withLock { state in
            state.waitingSince.map { $0.duration(to: .now) < .seconds(10) ? .milliseconds(40) : .milliseconds(250) }
        }
    }

    /// The worker has nothing to do and will sleep.
    func quiet() {
        state.withLock { state in
            state.asleep = true
            state.isRelieved = false
        }
        waker?.says(.asleep)
        signal.fire()
    }

    /// The worker looks by itself for a while, or has no free slot: an enqueue need not notify it.
    func busy(isFull: Bool = false) {
        let waiting = state.withLock { state in
            state.asleep = false
            state.wakes = []
            return state.waiting
        }
        waker?.says(isFull ? .full : .awake)
        waiting?.interruptNow()
        signal.fire()
    }

    /// It looks now, and takes what it finds: of all queues, or not of each. Only a waker wants to know.
    func looks(everywhere: @autoclosure () -> Bool) {
        guard let waker, state.withLock({ !$0.asleep }) else { return }
        waker.says(everywhere() ? .awake : .full)
    }

    /// It looks no more.
    func ends() { waker?.says(.full) }

    /// A wake-up brought work. A few a second are cheaper than going back and forth; many, or some at once, mean that we are busy.
    func woke(full: Bool) {
        let now = ContinuousClock.now
        let often = state.withLock { state in
            state.wakes.append(now)
            state.wakes.removeAll { $0.duration(to: now) > .seconds(1) }
            return state.wakes.count > 40 || state.wakes.count { $0.duration(to: now) < .milliseconds(50) } > 8
        }
        if often || full { busy() }
    }

    func run() async {
        await RetryingLoop.run { _ throws(PostgresError) in
            guard state.withLock({ $0.asleep }) else {
                await signal.wait()
                return
            }
            try await sleep()
        } failed: { error in
            state.withLock { state in
                state.holds = false
                state.waiting = nil
            }
            return error == .cancelled ? .atOnce : .pause
        }
        await link.close()
    }

    private func sleep() async throws(PostgresError) {
        try await link.use { connection throws(PostgresError) in
            var lock = SleepLock(Self.rules, on: connection) { begins in
                begins ? self.beginWaiting(connection) : self.endWaiting()
            }
            do throws(PostgresError) {
                while !Task.isCancelled, state.withLock({ $0.asleep }) {
                    if try await !lock.sleep(at: buckets.withLock { $0 }).isEmpty {
                        state.withLock { $0.holds = $0.asleep && lock.isWhole }
                        wakeups.lookEverywhere()
                    }
                    await signal.wait(for: poll)
                }
            } catch .cancelled where !Task.isCancelled {
                // the worker woke up while we waited for a lock
            }
            state.withLock { state in
                state.holds = false
                state.waiting = nil
            }
            try await lock.leave()
            // Another worker may take over.
            try await connection.execute("select pg_notify('millrace', 'door')")
        }
    }

    /// False: the worker is awake again.
    private func beginWaiting(_ connection: Connection) -> Bool {
        let isAsleep = state.withLock { state in
            if state.asleep {
                state.waiting = connection
                state.waitingSince = .now
            }
            return state.asleep
        }
        if isAsleep { wakeups.signal.fire() }
        return isAsleep
    }

    private func endWaiting() -> Bool {
        state.withLock { state in
            state.waiting = nil
            state.waitingSince = nil
        }
        return true
    }
}
