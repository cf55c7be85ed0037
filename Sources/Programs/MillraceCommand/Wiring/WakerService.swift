import Postgres
import Telemetry
import Threads

/// Listens and holds the locks that make writers notify, for all workers of a host that cannot: those behind a pooler, and those with few
/// connections. On two connections, because one that waits for a lock hears nothing.
struct WakerService: Sendable {
    /// What workers and their rooms heed.
    static let channels = [
        "millrace", "millrace_notices", "millrace_events", "millrace_webhooks", "millrace_providers", "millrace_feed",
        "millrace_feed_taken", "millrace_templates",
    ]

    /// K and D of the queues, and those of notices and events; see sql/locks.md.
    private enum Rules {
        static let queues = SleepLock.Rules(
            lock: 1_297_239_619, election: .eachPlace(1_297_239_620), patience: .milliseconds(200))
        static let notices = SleepLock.Rules(
            lock: 1_297_239_640, election: .once(1_297_239_641), patience: .milliseconds(100))
        static let events = SleepLock.Rules(lock: 1_297_239_619)
    }

    let server: WakerServer
    let options: ConnectionOptions
    let log: Log

    /// Until cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await server.run() }
            group.addTask { await listen() }
            group.addTask { await sleep() }
        }
    }

    private func listen() async {
        await RetryingLoop.run(cap: .seconds(2)) { loop throws(PostgresError) in
            let connection = try await Connection.open(options, name: "mr-waker")
            for channel in Self.channels { try await connection.listen(channel) }
            server.began()
            log.info("the waker hears")
            loop.worked()
            while !Task.isCancelled {
                for note in try await connection.notifications(until: .now + .seconds(30)) {
                    // A worker that held the locks has woken up: they are free.
                    if note.payload == "door" { server.changed.fire() } else { server.said(note) }
                }
            }
            await connection.close()
        } failed: { error in
            server.ended()
            if Task.isCancelled { return .end }
            log.warning("the waker cannot listen now; its workers poll", [("error", error.description)])
            return .pause
        }
        server.ended()
    }

    /// Writers notify while a worker sleeps. Notices and events are written less often, and are always notified.
    private func sleep() async {
        await RetryingLoop.run(cap: .seconds(2)) { loop throws(PostgresError) in
            let connection = try await Connection.open(options, name: "mr-waker-door")
            var queues = SleepLock(Rules.queues, on: connection)
            var notices = SleepLock(Rules.notices, on: connection)
            var events = SleepLock(Rules.events, on: connection)
            while !Task.isCancelled {
                let isNeeded = server.needsNotes()
                _ = try await queues.sleep(at: isNeeded ? Set(0..<64) : [])
                if isNeeded { queues.isWhole ? server.holds() : server.waits() }
                let isAnybodyThere = server.workers.all > 0
                var missing = try await notices.sleep(at: isAnybodyThere ? [0, 1] : [])
                missing.formUnion(try await events.sleep(at: isAnybodyThere ? [64] : []))
                // What was written before, nobody was told of.
                if !missing.isEmpty { server.look() }
                loop.worked()
                let isWhole = queues.isWhole && notices.isWhole && events.isWhole
                await server.changed.wait(for: isWhole ? .seconds(1) : .milliseconds(20))
            }
            await connection.close()
        } failed: { error in
            server.gives()
            if Task.isCancelled { return .end }
            log.debug("the waker holds no locks now", [("error", error.description)])
            return .pause
        }
    }
}
