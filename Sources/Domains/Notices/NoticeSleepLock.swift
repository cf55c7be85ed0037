import Postgres
import Telemetry
import Threads

/// Hears that something is due the moment it is committed. One worker, elected by the lock D, sleeps for all workers: while a lane of it
/// finds nothing more, it holds the lock K of that lane, so that a transaction that writes a notice notifies.
actor NoticeSleepLock {
    /// K and D; see sql/locks.md.
    private static let rules = SleepLock.Rules(
        lock: 1_297_239_640, election: .once(1_297_239_641), patience: .milliseconds(100))

    private let hearing: NotificationHub
    private let log: Log
    private let signals: [Bool: Wakeup]
    /// Lanes that find more than they can take. They look again by themselves, so no one needs to notify them.
    private var busy: Set<Bool> = []
    private var connection: Connection?

    /// - Parameter signals: the key is true for the lane of alarms.
    init(hearing: NotificationHub, signals: [Bool: Wakeup], log: Log) {
        self.hearing = hearing
        self.signals = signals
        self.log = log
        hearing.heed(["millrace_notices"]) { news in
            switch news {
            case .began: for signal in signals.values { signal.fire() }
            case .said(let lane): signals[lane == "alarm"]?.fire()
            case .ended: break
            }
        }
    }

    /// Notifications arrive and are being sent, so a lane needs to look only rarely.
    var isListening: Bool { hearing.isOpen && (connection != nil || hearing.waker != nil) }

    func setBusy(_ isBusy: Bool, alarms: Bool) {
        guard busy.contains(alarms) != isBusy else { return }
        if isBusy { busy.insert(alarms) } else { busy.remove(alarms) }
        // A call on the connection ends its wait for notifications.
        if let connection { Task { _ = await connection.isBroken } }
    }

    func run() async {
        // A connection for this alone is not there: a waker holds the locks for all workers, or the lanes poll.
        guard !hearing.lacksSessions else { return }
        await RetryingLoop.run(cap: .seconds(5)) { loop throws(PostgresError) in
            let opened = try await Connection.open(hearing.options, name: "mr-ear")
            if await opened.isPooled {
                await opened.close()
                return loop.end()  // no notification would arrive: the lanes poll instead
            }
            connection = opened
            loop.worked()
            try await stand(on: opened)
            connection = nil
            await opened.close()
        } failed: { error in
            connection = nil
            log.debug("no notifications of notices now; polling", [("error", "\(error)")])
            return .pause
        }
    }

    private func stand(on connection: Connection) async throws(PostgresError) {
        var lock = SleepLock(Self.rules, on: connection)
        while !Task.isCancelled {
            let quiet = Set([true, false]).subtracting(busy)
            for place in try await lock.sleep(at: Set(quiet.map { $0 ? 1 : 0 })) {
                signals[place == 1]?.fire()  // for everything written before
            }
            // No notification comes here, but a lost connection, and its lost locks, end the wait. Behind a writer, the next try is soon.
            _ = try await connection.notifications(until: .now + (lock.isWhole ? .seconds(1) : .milliseconds(20)))
        }
    }
}
