import Synchronization

/// The few connections that a whole process may open: all its rooms and loops borrow from them, each for one use, the more urgent first. It
/// goes with the options of who connects, so that a `Pool` made of them lends these and opens none.
///
/// One that asks for a second connection while it has one counts as urgent. What is not urgent never has all of them, so it gets the second
/// one, and nothing waits for itself.
package final class ConnectionBudget: Sendable {
    private struct State {
        var turns: BudgetTurns
        var idle: [Connection] = []
        /// Those that exist or are being opened.
        var open = 0
        var last: UInt64 = 0
        var waiting: [UInt64: CheckedContinuation<Bool, Never>] = [:]
        /// What became of those that had not joined the line yet; true: they go on.
        var decided: [UInt64: Bool] = [:]
        var losses = 0
        var lostAt = ContinuousClock.now
    }

    /// A connection that was lent, to be given back.
    package struct Lent: Sendable {
        package let connection: Connection
        /// It was opened for this use.
        package let isNew: Bool
        fileprivate let urgency: Urgency
    }

    package let most: Int
    private let state: Mutex<State>

    @TaskLocal private static var isHolding = false

    package init(most: Int) {
        self.most = most
        state = Mutex(State(turns: BudgetTurns(most: most)))
    }

    /// How many connections have broken.
    package var losses: Int { state.withLock { $0.losses } }

    /// Whether the last one broke no longer ago than that.
    package func hasLost(within limit: Duration) -> Bool {
        state.withLock { $0.losses > 0 && $0.lostAt.duration(to: .now) < limit }
    }

    /// Lends a connection to `body`.
    /// - Parameter wait: nil: for as long as it takes.
    package func lend<Value: Sendable>(
        _ options: ConnectionOptions, wait: Duration? = nil, isolation: isolated (any Actor)? = #isolation,
        _ body: (Connection) async throws(PostgresError) -> Value
    ) async throws(PostgresError) -> Value {
        let lent = try await take(options, wait: wait)
        do {
            let value = try await Self.holding { () async throws(PostgresError) in try await body(lent.connection) }
            await give(lent)
            return value
        } catch {
            await give(lent, keeps: !error.isOutage || error.isShortage)
            throw error
        }
    }

    /// Marks `body` as one that has a connection.
    package static func holding<Value, Failure: Error>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let outcome: Result<Value, Failure> = await $isHolding.withValue(true) {
            do throws(Failure) {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }

    /// Waits for a connection; `give` ends its use.
    package func take(_ options: ConnectionOptions, wait: Duration? = nil) async throws(PostgresError) -> Lent {
        let urgency = Self.isHolding ? .urgent : options.urgency
        guard await turn(urgency, wait: wait) else {
            throw Task.isCancelled ? .cancelled : .exhausted(size: most, after: wait ?? .zero)
        }
        let (found, inTheWay) = state.withLock { state in
            if let index = state.idle.lastIndex(where: { $0.options.sharesSession(with: options) }) {
                return (state.idle.remove(at: index) as Connection?, nil as Connection?)
            }
            // One that goes on has room for a connection: if all are open, one of them is idle.
            if state.open >= most, !state.idle.isEmpty { return (nil, state.idle.removeFirst()) }
            state.open += 1
            return (nil, nil)
        }
        if let found {
            found.limitAnswers(to: options.mostAnswerBytes)
            return Lent(connection: found, isNew: false, urgency: urgency)
        }
        await inTheWay?.close()
        do {
            return Lent(
                connection: try await Connection.open(options, name: "pg-lent"), isNew: true, urgency: urgency)
        } catch {
            passOn(nil, urgency)
            throw error
        }
    }

    /// - Parameter keeps: false: it is closed, because its server is going away.
    package func give(_ lent: Lent, keeps: Bool = true) async {
        let isBroken = await lent.connection.isBroken
        let isWhole = await lent.connection.isReusable
        let isKept = keeps && isWhole
        if !isKept { await lent.connection.close() }
        if isBroken || !keeps {
            state.withLock { state in
                state.losses += 1
                state.lostAt = .now
            }
        }
        passOn(isKept ? lent.connection : nil, lent.urgency)
    }

    /// Closes those that nobody uses.
    package func close() async {
        let idle = state.withLock { state in
            defer {
                state.open -= state.idle.count
                state.idle = []
            }
            return state.idle
        }
        for connection in idle { await connection.close() }
    }

    private func passOn(_ connection: Connection?, _ urgency: Urgency) {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            if let connection { state.idle.append(connection) } else { state.open -= 1 }
            guard let id = state.turns.give(urgency) else { return nil }
            if let waiter = state.waiting.removeValue(forKey: id) { return waiter }
            state.decided[id] = true
            return nil
        }
        next?.resume(returning: true)
    }

    /// False: it was not its turn in time, or its task was cancelled.
    private func turn(_ urgency: Urgency, wait: Duration?) async -> Bool {
        let (id, isGranted) = state.withLock { state in
            state.last += 1
            return (state.last, state.turns.ask(state.last, urgency))
        }
        if isGranted { return true }
        let timer = wait.map { wait in
            Task {  // ends with the wait: cancelled on the way out
                try await Task.sleep(for: wait)
                giveUp(id)
            }
        }
        defer { timer?.cancel() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let early: Bool? = state.withLock { state in
                    if let decided = state.decided.removeValue(forKey: id) { return decided }
                    state.waiting[id] = continuation
                    return nil
                }
                if let early { continuation.resume(returning: early) }
            }
        } onCancel: {
            giveUp(id)
        }
    }

    private func giveUp(_ id: UInt64) {
        let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard state.turns.leave(id) else { return nil }
            if let waiter = state.waiting.removeValue(forKey: id) { return waiter }
            state.decided[id] = false
            return nil
        }
        waiter?.resume(returning: false)
    }
}

extension ConnectionOptions {
    /// The same with another urgency, where connections are few.
    package func urgent(_ urgency: Urgency) -> ConnectionOptions {
        var options = self
        options.urgency = urgency
        return options
    }

    /// A connection of the one serves the other as well.
    func sharesSession(with other: ConnectionOptions) -> Bool {
        location == other.location && prepare == other.prepare && password == other.password
            && applicationName == other.applicationName
    }
}
