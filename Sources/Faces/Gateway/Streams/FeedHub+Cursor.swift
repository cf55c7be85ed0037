import Postgres
import Telemetry
import Threads

/// The cursor: reads the feed on a connection of its own, and sleeps while nothing comes.
extension FeedHub {
    /// See sql/locks.md. It only tries: several gateways share one lock, and those that do not get it look more often.
    private static let rules = SleepLock.Rules(lock: 1_297_239_642)
    private static let place = Int32(0)

    /// Until cancelled.
    func read() async {
        await RetryingLoop.run { loop in
            if connecting.budget != nil { return try await readBorrowing { loop.worked() } }
            let connection = try await Connection.open(connecting, name: "mr-feed")
            do {
                try await read(on: connection) { loop.worked() }
            } catch {
                await connection.close()
                throw error
            }
        } failed: { error in
            answerWaiting(upTo: .max, with: false)
            if Task.isCancelled { return .end }
            log.warning("the feed waits for the database", [("error", "\(error)")])
            return .pause
        }
    }

    /// Of the few connections of the process, one for each look. No lock is held between, so this looks ten times a second while somebody reads.
    private func readBorrowing(worked: () -> Void) async throws {
        let pool = Pool(connecting.urgent(.late), size: 1)
        try await pool.withConnection { @Sendable connection in try await self.start(on: connection) }
        while !Task.isCancelled {
            let found = try await pool.withConnection { @Sendable connection in
                try await self.look(on: connection)
            }
            worked()
            if found == FeedStore.cursorPage { continue }
            if found > 0, hasReaders {
                await bell.wait(for: options.pause)
            } else {
                await bell.wait(for: hasReaders ? .milliseconds(100) : .seconds(1))
            }
        }
    }

    private func read(on connection: Connection, worked: () -> Void) async throws {
        try await start(on: connection)
        var lock = SleepLock(Self.rules, on: connection)
        var empty = 0
        while !Task.isCancelled {
            let found = try await look(on: connection)
            worked()
            empty = found == 0 ? empty + 1 : 0
            if found == FeedStore.cursorPage { continue }
            // Another gateway may be numbering what we were woken for; a second look finds it.
            if empty < 2, hasReaders {
                await bell.wait(for: options.pause)
                continue
            }
            if try await sleep(&lock, on: connection) { empty = 0 }
        }
    }

    /// The cursor goes on where it was; the first time it begins some entries back, for clients of the process before this one.
    private func start(on connection: Connection) async throws {
        // What is taken back from now on is heard. Behind a pooler nothing is.
        if position == nil, !hearing.isOpen { await bell.wait(for: .seconds(1)) }
        let bounds = try await store.bounds(on: connection)
        if let position {
            guard bounds.newest < position || position < bounds.oldest else { return }
            log.warning(
                "the database has other changes than were read, as after a restore: all streams end and begin again",
                [("feed.position", "\(position)"), ("feed.newest", "\(bounds.newest)")])
            return begin(at: bounds.newest, resets: true)
        }
        begin(at: max(bounds.oldest, bounds.newest - Int64(options.kept)), resets: false)
    }

    private func look(on connection: Connection) async throws(PostgresError) -> Int {
        let look = lookBegins()
        let entries = try await store.new(after: position ?? 0, on: connection)
        spread(entries)
        if entries.count < FeedStore.cursorPage { lookEnded(look) }
        return entries.count
    }

    /// Sleeps until there may be something new; true: there may be.
    private func sleep(_ lock: inout SleepLock, on connection: Connection) async throws -> Bool {
        guard hasReaders else {
            // The entries are kept up to date for those who come. Writers need not tell.
            return await bell.wait(for: .seconds(1))
        }
        guard hearing.isOpen, !hearing.lacksSessions else { return await bell.wait(for: .milliseconds(100)) }
        while hasReaders {
            // While the lock is held, writers tell us.
            _ = try await lock.sleep(at: [Self.place])
            if try await look(on: connection) > 0 { break }
            if await bell.wait(for: lock.held.isEmpty ? .milliseconds(100) : .seconds(1)) { break }
        }
        try await lock.leave()
        return true
    }
}
