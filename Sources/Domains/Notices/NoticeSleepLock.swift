import Postgres
import Synchronization
import Telemetry
import Threads

/// Hears that something is due the moment it is committed. One worker, elected by the lock D, waits for all workers: while a lane
/// sleeps it holds the lock K of that lane. A transaction that writes a notice tries to share K, fails, and notifies. K is granted only
/// after every transaction that could have shared it earlier has committed, so a single look after that finds what those wrote.
final class NoticeSleepLock: Sendable {
    private static let k = Int32(1_297_239_640)
    private static let d = Int32(1_297_239_641)

    private struct State {
        /// Lanes that find more than they can take. They look again by themselves, so no one needs to notify them.
        var busy: Set<Bool> = []
        var held: Set<Bool> = []
        var isDoorman = false
        var connection: Connection?
    }

    private let hearing: NotificationHub
    private let log: Log
    private let signals: [Bool: Signal]
    private let state = Mutex(State())

    /// - Parameter signals: the key is true for the lane of alarms.
    init(hearing: NotificationHub, signals: [Bool: Signal], log: Log) {
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
    var isListening: Bool { hearing.isOpen && state.withLock { $0.connection != nil } }

    func setBusy(_ isBusy: Bool, alarms: Bool) {
        let connection: Connection? = state.withLock { state in
            guard state.busy.contains(alarms) != isBusy else { return nil }
            if isBusy { state.busy.insert(alarms) } else { state.busy.remove(alarms) }
            return state.connection
        }
        // A call on the connection ends its wait for notifications.
        if let connection { Task { _ = await connection.isBroken } }
    }

    func run() async {
        var backoff = Backoff(cap: .seconds(5))
        while !Task.isCancelled {
            do {
                let connection = try await Connection.open(hearing.options, name: "mr-ear")
                if await connection.isPooled {
                    await connection.close()
                    return  // no notification would arrive: the lanes poll instead
                }
                state.withLock { $0.connection = connection }
                backoff.reset()
                try await stand(on: connection)
                forget()
                await connection.close()
            } catch {
                forget()
                log.debug("no notifications of notices now; polling", [("error", "\(error)")])
                try? await Task.sleep(for: backoff.next())
            }
        }
    }

    private func stand(on connection: Connection) async throws(PostgresError) {
        while !Task.isCancelled {
            let isWaiting = try await keepLocks(on: connection)
            // No notification comes here, but a lost connection, and its lost locks, end the wait.
            _ = try await connection.notifications(until: .now + (isWaiting ? .milliseconds(20) : .seconds(1)))
        }
    }

    /// Takes and releases locks as the lanes need them. True: a lock is still missing.
    private func keepLocks(on connection: Connection) async throws(PostgresError) -> Bool {
        let (isDoorman, held, busy) = state.withLock { ($0.isDoorman, $0.held, $0.busy) }
        if !isDoorman {
            guard try await truth("select pg_try_advisory_lock($1, 0)", Self.d, on: connection) else { return false }
            state.withLock { $0.isDoorman = true }
        }
        var isWaiting = false
        for alarms in [true, false] {
            switch (held.contains(alarms), busy.contains(alarms)) {
            case (false, false):
                if try await lock(alarms, on: connection) {
                    state.withLock { _ = $0.held.insert(alarms) }
                } else {
                    isWaiting = true
                }
                signals[alarms]?.fire()  // for everything written before
            case (true, true):
                _ = try await truth(
                    "select pg_advisory_unlock($1, $2)", Self.k, alarms ? 1 : 0, on: connection)
                state.withLock { _ = $0.held.remove(alarms) }
            case (true, false), (false, true): break
            }
        }
        return isWaiting
    }

    /// Waits briefly behind the transactions that are writing now. A transaction that comes later notifies, and is heard once we stop
    /// waiting.
    private func lock(_ alarms: Bool, on connection: Connection) async throws(PostgresError) -> Bool {
        do {
            _ = try await connection.query(
                "select pg_advisory_lock($1, $2) is null", [.int4(Self.k), .int4(alarms ? 1 : 0)],
                deadline: .milliseconds(100)
            ) { row throws(PostgresError) in try row.bool(0) }
            return true
        } catch .timedOut {
            if await connection.isBroken { throw .lost(reason: "it broke while it waited for a lock") }
            return false
        }
    }

    private func truth(
        _ sql: SQL, _ lock: Int32, _ lane: Int32? = nil, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.query(sql, [.int4(lock)] + (lane.map { [.int4($0)] } ?? [])) {
            row throws(PostgresError) in try row.bool(0)
        }.first ?? false
    }

    private func forget() {
        state.withLock { state in
            state.connection = nil
            state.isDoorman = false
            state.held = []
        }
    }
}
