import Synchronization
import Threads

/// A bounded set of connections, opened as they are needed; a broken one is dropped when it comes back.
package final class Pool: Sendable {
    private struct State {
        var idle: [Connection] = []
        var open = 0
        var waiters: [(id: UInt64, continuation: CheckedContinuation<Turn, Never>)] = []
        var nextWaiter: UInt64 = 0
        /// Whose time was up before they had joined the line.
        var late: Set<UInt64> = []
        var closed = false
    }
    private enum Turn: Sendable {
        case use(Connection)
        case open
        case gaveUp
    }

    package let options: ConnectionOptions
    package let size: Int
    package let checkoutDeadline: Duration
    private let state = Mutex(State())
    /// The turns of those who have a share only.
    private let holders: Turns
    /// Of a share: the pool whose connections it lends, and for whom.
    private let lender: (pool: Pool, holder: String)?

    /// - Parameter share: the most connections of one holder at once; see `share(of:)`. An eighth of them if it is not given, and not one alone.
    package init(
        _ options: ConnectionOptions, size: Int, checkoutDeadline: Duration = .seconds(10), share: Int? = nil
    ) {
        self.options = options
        self.size = size
        self.checkoutDeadline = checkoutDeadline
        holders = Turns(
            atOnce: share ?? max(min(size, 2), size / 8), waiting: Self.mostWaiting, patience: checkoutDeadline)
        lender = nil
    }

    private init(of lender: Pool, for holder: String) {
        options = lender.options
        size = lender.holders.atOnce
        checkoutDeadline = lender.checkoutDeadline
        holders = lender.holders
        self.lender = (lender, holder)
    }

    /// Wait in the line of one holder at most.
    private static let mostWaiting = 64

    /// The same connections, of which one holder has a few at once. Its further calls wait in a line of its own and hold none meanwhile, so
    /// however much one holder asks for, there are some for the others. Close the pool itself.
    package func share(of holder: String) -> Pool { Pool(of: self, for: holder) }

    /// Lends a connection to `body`, waiting for one at most the checkout deadline.
    package func withConnection<Value: Sendable, Failure: Error>(
        _ body: (Connection) async throws(Failure) -> Value
    ) async throws -> Value {
        guard let lender else { return try await lend(body) }
        do throws(Turns.Refusal) {
            try await holders.take(lender.holder)
        } catch .cancelled {
            throw PostgresError.cancelled
        } catch {
            throw PoolShareTaken(share: size)
        }
        defer { holders.give(lender.holder) }
        return try await lender.pool.lend(body)
    }

    private func lend<Value: Sendable, Failure: Error>(
        _ body: (Connection) async throws(Failure) -> Value
    ) async throws -> Value {
        if let budget = options.budget { return try await lend(of: budget, body) }
        let connection = try await checkOut()
        do {
            let value = try await body(connection)
            await checkIn(connection)
            return value
        } catch {
            await checkIn(connection)
            throw error
        }
    }

    /// Of the connections of the process; this pool has none.
    private func lend<Value: Sendable, Failure: Error>(
        of budget: ConnectionBudget, _ body: (Connection) async throws(Failure) -> Value
    ) async throws -> Value {
        let lent = try await budget.take(options, wait: checkoutDeadline)
        do {
            let value = try await ConnectionBudget.holding { () async throws(Failure) in
                try await body(lent.connection)
            }
            await budget.give(lent)
            return value
        } catch {
            await budget.give(lent)
            throw error
        }
    }

    package func close() async {
        let (idle, waiters) = state.withLock { state in
            defer {
                state.idle = []
                state.waiters = []
                state.closed = true
            }
            return (state.idle, state.waiters)
        }
        for waiter in waiters { waiter.continuation.resume(returning: .gaveUp) }
        for connection in idle { await connection.close() }
    }

    private func checkOut() async throws(PostgresError) -> Connection {
        switch try await turn() {
        case .use(let connection): return connection
        case .gaveUp: throw Task.isCancelled ? .cancelled : .exhausted(size: size, after: checkoutDeadline)
        case .open:
            do {
                return try await Connection.open(options, name: "pg-pool")
            } catch {
                passOn(nil)
                throw error
            }
        }
    }

    private func turn() async throws(PostgresError) -> Turn {
        let (now, id): (Turn?, UInt64) = state.withLock { state in
            if state.closed { return (.gaveUp, 0) }
            if let connection = state.idle.popLast() { return (.use(connection), 0) }
            if state.open < size {
                state.open += 1
                return (.open, 0)
            }
            state.nextWaiter += 1
            return (nil, state.nextWaiter)
        }
        if let now { return now }
        let timer = Task { [self, checkoutDeadline] in  // ends with the wait: cancelled on the way out
            try await Task.sleep(for: checkoutDeadline)
            resume(id, .gaveUp)
        }
        defer {
            timer.cancel()
            _ = state.withLock { $0.late.remove(id) }
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let early: Turn? = state.withLock { state in
                    if Task.isCancelled || state.closed || state.late.contains(id) { return .gaveUp }
                    // Something may have come free since the first look.
                    if let connection = state.idle.popLast() { return .use(connection) }
                    if state.open < size {
                        state.open += 1
                        return .open
                    }
                    state.waiters.append((id, continuation))
                    return nil
                }
                if let early { continuation.resume(returning: early) }
            }
        } onCancel: {
            resume(id, .gaveUp)
        }
    }

    private func resume(_ id: UInt64, _ turn: Turn) {
        let waiter = state.withLock { state in
            guard let index = state.waiters.firstIndex(where: { $0.id == id }) else {
                state.late.insert(id)
                return nil as CheckedContinuation<Turn, Never>?
            }
            return state.waiters.remove(at: index).continuation
        }
        waiter?.resume(returning: turn)
    }

    private func checkIn(_ connection: Connection) async {
        let keeps = await connection.isReusable
        if !keeps { await connection.close() }
        passOn(keeps ? connection : nil)
    }

    /// Gives a connection, or the right to open one, to the longest waiting caller.
    private func passOn(_ connection: Connection?) {
        let waiter = state.withLock { state -> CheckedContinuation<Turn, Never>? in
            if !state.waiters.isEmpty { return state.waiters.removeFirst().continuation }
            if let connection, !state.closed {
                state.idle.append(connection)
            } else {
                state.open -= 1
            }
            return nil
        }
        waiter?.resume(returning: connection.map { .use($0) } ?? .open)
    }
}

/// One holder has all connections of its share, and its line is full or did not move on in time.
package struct PoolShareTaken: Error, Sendable, Equatable, CustomStringConvertible {
    package let share: Int

    package var description: String { "This caller has its \(share) connections of the pool already." }
}

extension Connection {
    /// Whole, and outside any transaction.
    var isReusable: Bool {
        guard let handle, !handle.isBad else { return false }
        return isIdle(handle)
    }
}
