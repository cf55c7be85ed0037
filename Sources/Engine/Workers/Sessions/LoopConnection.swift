import Postgres
import Synchronization
import Telemetry
import Threads

/// A connection that one loop keeps for itself: opened when needed, dropped when broken. It works on the link's thread, as does a loop
/// that runs there (`run`): between the two nothing goes from thread to thread. Where the process has few connections, each use borrows one
/// of them instead, and none is kept.
final class LoopConnection: Sendable {
    private struct State {
        var connection: Connection?
        var opened = 0
        var since = ContinuousClock.now
    }

    private let options: ConnectionOptions
    private let thread: ThreadExecutor
    private let outage: Outage
    private let state = Mutex(State())

    init(_ options: ConnectionOptions, name: String, outage: Outage) {
        self.options = options
        thread = ThreadExecutor(name: name)
        self.outage = outage
    }

    deinit {
        thread.stop()
    }

    /// Runs the loop on the connection's own thread. Not for slow work: users of the connection wait for it.
    func run(isolation: isolated (any Actor)? = #isolation, _ loop: () async -> Void) async {
        await withTaskExecutorPreference(thread, operation: loop)
    }

    /// The same, to its end even if the caller's task is cancelled.
    func runUninterrupted(_ work: @Sendable @escaping () async -> Void) async {
        await Task(executorPreference: thread, operation: work).value
    }

    /// Grows with every new connection.
    var generation: Int {
        if let budget = options.budget { return 1 + budget.losses }
        return state.withLock { $0.opened }
    }

    /// Is this not the first connection, and no older than that?
    func isReplaced(within limit: Duration) -> Bool {
        if let budget = options.budget { return budget.hasLost(within: limit) }
        return state.withLock { $0.opened > 1 && $0.since.duration(to: .now) < limit }
    }

    /// nil as well where each use borrows one.
    var current: Connection? {
        state.withLock { $0.connection }
    }

    /// Each use borrows one of the few connections of the process.
    var borrows: Bool { options.budget != nil }

    /// Has a connection, unless each use borrows one.
    func reach() async throws(PostgresError) {
        if !borrows { _ = try await connection() }
    }

    func connection() async throws(PostgresError) -> Connection {
        if let connection = current { return connection }
        let start = ContinuousClock.now
        do {
            let connection = try await Connection.open(options, on: thread)
            state.withLock { state in
                state.connection = connection
                state.opened += 1
                state.since = .now
            }
            outage.ended()
            return connection
        } catch {
            outage.began(error, triedSince: start)
            throw error
        }
    }

    func use<Value: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ body: (Connection) async throws(PostgresError) -> Value
    ) async throws(PostgresError) -> Value {
        if let budget = options.budget { return try await borrow(of: budget, body) }
        let connection = try await connection()
        do {
            return try await body(connection)
        } catch {
            outage.began(error)
            if await connection.isBroken || (error.isOutage && !error.isShortage) { drop(connection) }
            throw error
        }
    }

    private func borrow<Value: Sendable>(
        of budget: ConnectionBudget, isolation: isolated (any Actor)? = #isolation,
        _ body: (Connection) async throws(PostgresError) -> Value
    ) async throws(PostgresError) -> Value {
        let start = ContinuousClock.now
        do {
            let value = try await budget.lend(options) { connection throws(PostgresError) in
                try await body(connection)
            }
            if outage.lasts != nil { outage.ended() }
            return value
        } catch {
            outage.began(error, triedSince: start)
            throw error
        }
    }

    func drop() {
        state.withLock { $0.connection = nil }
    }

    /// Unless somebody has put another in its place.
    private func drop(_ connection: Connection) {
        state.withLock { state in
            if state.connection === connection { state.connection = nil }
        }
    }

    func close() async {
        let connection = current
        drop()
        await connection?.close()
    }
}

/// Says once that the database is unreachable, and once that it is back.
final class Outage: Sendable {
    private let log: Log
    private let state = Mutex(State())

    private struct State {
        var since: ContinuousClock.Instant?
        /// When a connection was last had.
        var reached: ContinuousClock.Instant?
    }

    init(log: Log) {
        self.log = log
    }

    var lasts: Duration? {
        state.withLock { $0.since.map { $0.duration(to: .now) } }
    }

    /// A connection that broke says nothing of the database: it may have been back for long when this one notices. Only a new one
    /// that cannot be had does. Nor does a statement that was too slow: the server has ended it when we asked it to.
    /// - Parameter triedSince: an attempt that began before somebody else's came through says nothing either.
    func began(_ error: PostgresError, triedSince start: ContinuousClock.Instant = .now) {
        switch error {
        case .unreachable, .exhausted: break
        case .server(let server) where server.sqlState == "25006": break  // a standby, or made read-only
        case .server, .lost, .timedOut, .cancelled, .undecodable, .misconfigured: return
        }
        let first = state.withLock { state in
            if let reached = state.reached, start < reached { return false }
            defer { state.since = state.since ?? .now }
            return state.since == nil
        }
        if first {
            log.warning(
                "the database is unreachable; handlers go on, nothing new is claimed", [("error", error.description)])
        }
    }

    func ended() {
        let lasted = state.withLock { state in
            defer { state = State(since: nil, reached: .now) }
            return state.since.map { $0.duration(to: .now) }
        }
        if let lasted {
            log.info("the database is back", [("after_s", "\(lasted / .seconds(1))")])
        }
    }
}
