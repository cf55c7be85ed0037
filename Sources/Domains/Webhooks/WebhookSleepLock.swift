import Postgres
import Threads

/// Wakes the service when there are new events or targets, and makes publishers notify while it sleeps.
actor WebhookSleepLock {
    /// See sql/locks.md. It only tries: an event that is found at the next look is early enough.
    private static let rules = SleepLock.Rules(lock: 1_297_239_619)
    private static let place = Int32(64)

    private let hearing: NotificationHub
    private let bell: Wakeup
    private var connection: Connection?

    init(_ hearing: NotificationHub, bell: Wakeup) {
        self.hearing = hearing
        self.bell = bell
        hearing.heed(["millrace_events", "millrace_webhooks"]) { [bell] news in
            if news != .ended { bell.fire() }
        }
    }

    /// Sleeps until a notification comes, the signal fires or the time is over. `look` is the last look before sleeping: true when there is
    /// work after all.
    func nap(_ limit: Duration, look: @Sendable () async throws -> Bool) async {
        guard hearing.isOpen, !hearing.lacksSessions else {
            await bell.wait(for: limit)
            return
        }
        do {
            var lock = SleepLock(Self.rules, on: try await standing())
            _ = try await lock.sleep(at: [Self.place])
            if try await !look() { await bell.wait(for: limit) }
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
        let opened = try await Connection.open(hearing.options, name: "mr-webhooks")
        connection = opened
        return opened
    }
}
