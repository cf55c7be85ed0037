import Postgres
import Threads

/// Wakes the service when there are new events or targets, and makes publishers notify while it sleeps.
actor WebhookSleepLock {
    private let hearing: NotificationHub
    private let bell: Signal
    private var connection: Connection?

    init(_ hearing: NotificationHub, bell: Signal) {
        self.hearing = hearing
        self.bell = bell
        hearing.heed(["millrace_events", "millrace_webhooks"]) { [bell] news in
            if news != .ended { bell.fire() }
        }
    }

    /// Sleeps until a notification comes, the signal fires or the time is over. `look` is the last look before sleeping: true when there is
    /// work after all.
    func nap(_ limit: Duration, look: @Sendable () async throws -> Bool) async {
        guard hearing.isOpen else {
            await bell.wait(for: limit)
            return
        }
        do {
            let connection = try await standing()
            // Publishers notify only while a session holds this lock; see `event_wake`.
            let holds = try await Self.truth("select pg_try_advisory_lock(1297239619, 64)", on: connection)
            if try await !look() { await bell.wait(for: limit) }
            if holds { _ = try await Self.truth("select pg_advisory_unlock(1297239619, 64)", on: connection) }
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

    private static func truth(_ sql: SQL, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.query(sql) { row throws(PostgresError) in try row.bool(0) }.first ?? false
    }
}
