import Postgres
import Threads

/// Wakes the reader of the feed when somebody commits a change, and makes writers notify while it sleeps, and only then.
actor FeedSleepLock {
    /// See sql/locks.md. It only tries. Of several gateways one holds the lock; the others look each `unheldNap`.
    private static let rules = SleepLock.Rules(lock: 1_297_239_642)
    private static let place = Int32(0)
    private static let unheldNap = Duration.milliseconds(100)

    private let hearing: NotificationHub
    private let bell: Signal
    private var connection: Connection?

    /// - Parameter bell: fires when there may be something new.
    init(_ hearing: NotificationHub, bell: Signal) {
        self.hearing = hearing
        self.bell = bell
        hearing.heed(["millrace_feed"]) { [bell] news in
            if news != .ended { bell.fire() }
        }
    }

    /// Sleeps until a notification comes, the signal fires or the time is over. `look` is the last look before sleeping: true when there is
    /// something new after all.
    func nap(_ limit: Duration, look: @Sendable () async throws -> Bool) async {
        guard hearing.isOpen else {
            await bell.wait(for: min(limit, Self.unheldNap))
            return
        }
        do {
            var lock = SleepLock(Self.rules, on: try await standing())
            _ = try await lock.sleep(at: [Self.place])
            if try await !look() { await bell.wait(for: lock.isWhole ? limit : min(limit, Self.unheldNap)) }
            try await lock.leave()
        } catch {
            await close()
            await bell.wait(for: min(limit, .seconds(1)))
        }
    }

    func close() async {
        await connection?.close()
        connection = nil
    }

    private func standing() async throws -> Connection {
        if let connection, await !connection.isBroken { return connection }
        let opened = try await Connection.open(hearing.options, name: "mr-feed")
        connection = opened
        return opened
    }
}
