import Postgres
import Queues
import Synchronization
import Telemetry
import Threads

/// Makes sure that an enqueue wakes a sleeping worker, and that nobody notifies while all are awake.
///
/// While its worker sleeps it holds, alone, the advisory lock K of each bucket of queues: an enqueuer's try to share it fails,
/// and so it notifies. To get K it has to wait for every enqueuer that shares it, which are those that saw nobody asleep; when
/// it is granted they have all committed, and one careful look finds their jobs. One sleepLock per bucket, elected by lock D.
final class QueueSleepLock: WorkerPart {
    private struct State {
        var asleep = false
        var holds = false
        var waiting: Connection?
        var waitingSince: ContinuousClock.Instant?
        var wakes: [ContinuousClock.Instant] = []
    }

    private static let k = Int32(1_297_239_619)
    private static let d = Int32(1_297_239_620)

    private let link: LoopConnection
    private let wakeups: Wakeups
    private let log: Log
    private let state = Mutex(State())
    private let buckets: Mutex<[Int32]>
    private let poll: Duration
    let signal = Signal()

    init(link: LoopConnection, wakeups: Wakeups, poll: Duration, log: Log) {
        self.link = link
        self.wakeups = wakeups
        self.poll = poll
        self.log = log
        buckets = Mutex(Array(0..<64))
    }

    /// nil: all queues, also those that do not exist yet.
    func serve(queues: [Int32]?) {
        buckets.withLock { $0 = queues.map { Set($0.map { $0 & 63 }).sorted() } ?? Array(0..<64) }
    }

    var holds: Bool { state.withLock { $0.holds } }

    /// While we queue behind enqueuers whose transactions are open: how often to look meanwhile. They saw nobody asleep and will
    /// notify nobody, and the lock is ours only when the last of them has committed.
    var impatience: Duration? {
        state.withLock { state in
            state.waitingSince.map { $0.duration(to: .now) < .seconds(10) ? .milliseconds(40) : .milliseconds(250) }
        }
    }

    /// The worker has nothing to do and will sleep.
    func quiet() {
        state.withLock { $0.asleep = true }
        signal.fire()
    }

    /// The worker looks by itself for a while, or has no free slot: an enqueue need not notify it.
    func busy() {
        let waiting = state.withLock { state in
            state.asleep = false
            state.wakes = []
            return state.waiting
        }
        waiting?.interruptNow()
        signal.fire()
    }

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
        var backoff = Backoff()
        while !Task.isCancelled {
            guard state.withLock({ $0.asleep }) else {
                await signal.wait()
                continue
            }
            do throws(PostgresError) {
                try await guardDoor()
                backoff.reset()
            } catch {
                state.withLock { state in
                    state.holds = false
                    state.waiting = nil
                }
                if error != .cancelled { try? await Task.sleep(for: backoff.next()) }
            }
        }
        await link.close()
    }

    private func guardDoor() async throws(PostgresError) {
        try await link.use { connection throws(PostgresError) in
            do throws(PostgresError) {
                try await stand(on: connection)
            } catch .cancelled where !Task.isCancelled {
                // the worker woke up while we waited for a lock
            }
            try await leave(connection)
        }
    }

    private func stand(on connection: Connection) async throws(PostgresError) {
        var mine: Set<Int32> = []
        var held: Set<Int32> = []
        while !Task.isCancelled, state.withLock({ $0.asleep }) {
            let wanted = buckets.withLock { $0 }.filter { !mine.contains($0) }
            if !wanted.isEmpty { mine.formUnion(try await tryLocks(Self.d, wanted, on: connection)) }
            let missing = mine.subtracting(held)
            if !missing.isEmpty {
                held.formUnion(try await tryLocks(Self.k, missing.sorted(), on: connection))
                for bucket in missing.subtracting(held).sorted() {
                    let alone = missing.subtracting(held).count == 1
                    if try await waitForLock(bucket, atMost: alone ? nil : "200ms", on: connection) {
                        held.insert(bucket)
                    }
                }
                state.withLock { $0.holds = $0.asleep && held == mine }
                wakeups.lookEverywhere()
            }
            await signal.wait(for: poll)
        }
    }

    private func leave(_ connection: Connection) async throws(PostgresError) {
        state.withLock { state in
            state.holds = false
            state.waiting = nil
        }
        try await connection.execute("select pg_advisory_unlock_all()")
        try await connection.execute("select pg_notify('millrace', 'door')")
    }

    private func tryLocks(_ key: Int32, _ buckets: [Int32], on connection: Connection) async throws(PostgresError)
        -> [Int32]
    {
        try await connection.query(
            "select b from unnest($2::int[]) b where pg_try_advisory_lock($1, b)", [.int4(key), .int4s(buckets)]
        ) { row throws(PostgresError) in Int32(try row.int(0)) }
    }

    /// Queued behind the enqueuers that share the lock; while we are, every new one's try fails, and it notifies.
    private func waitForLock(
        _ bucket: Int32, atMost limit: String?, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let goes = state.withLock { state in
            if state.asleep {
                state.waiting = connection
                state.waitingSince = .now
            }
            return state.asleep
        }
        guard goes else { return false }
        wakeups.signal.fire()
        defer {
            state.withLock { state in
                state.waiting = nil
                state.waitingSince = nil
            }
        }
        do {
            try await connection.execute("select set_config('lock_timeout', $1, false)", [.text(limit ?? "0")])
            try await connection.execute(
                "select pg_advisory_lock($1, $2)", [.int4(Self.k), .int4(bucket)], deadline: .seconds(86400))
            return true
        } catch .server(let error) where error.sqlState == "55P03" {
            return false
        }
    }
}
