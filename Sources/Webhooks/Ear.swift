import Postgres
import Threads

/// Hears of events and of new targets while nothing is to be done, where notifications come through.
actor Ear {
    private let options: ConnectionOptions
    private var connection: Connection?
    /// A pooler stands in between.
    private var isDeaf = false

    init(_ options: ConnectionOptions) {
        self.options = options
    }

    /// Sleeps until something is heard, the bell is rung or the time is over. `look` is the last look before: true when there is
    /// something to do after all.
    func nap(_ limit: Duration, bell: Signal, look: @Sendable () async throws -> Bool) async {
        do {
            guard let connection = try await listening() else { return await Self.wait(bell, limit) }
            // Publishers notify only when somebody holds this; see `event_wake`.
            let holds = try await Self.truth("select pg_try_advisory_lock(1297239619, 64)", on: connection)
            if try await !look() {
                await withTaskGroup(of: Void.self) { group in
                    group.addTask { _ = try? await connection.notifications(until: .now + limit) }
                    group.addTask { await Self.wait(bell, limit) }
                    await group.next()
                    group.cancelAll()
                }
            }
            if holds { _ = try await Self.truth("select pg_advisory_unlock(1297239619, 64)", on: connection) }
        } catch {
            await close()
            await Self.wait(bell, min(limit, .seconds(1)))
        }
    }

    func close() async {
        await connection?.close()
        connection = nil
    }

    private func listening() async throws -> Connection? {
        if let connection, await !connection.isBroken { return connection }
        guard !isDeaf else { return nil }
        let opened = try await Connection.open(options, name: "mr-webhooks")
        if await opened.isPooled {
            isDeaf = true
            await opened.close()
            return nil
        }
        for channel in ["millrace_events", "millrace_webhooks"] { try await opened.listen(channel) }
        connection = opened
        return opened
    }

    private static func wait(_ bell: Signal, _ limit: Duration) async { await bell.wait(for: limit) }

    private static func truth(_ sql: SQL, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.query(sql) { row throws(PostgresError) in try row.bool(0) }.first ?? false
    }
}
