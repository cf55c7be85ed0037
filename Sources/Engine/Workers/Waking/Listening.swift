import MillraceQueues
import Postgres
import Threads

/// Hears by a waker of this host, if the process has one, for the worker and for the other rooms of the process.
struct Following: WorkerPart {
    let hub: NotificationHub

    func run() async { await hub.follow() }
}

/// Listens for notifications, for the worker and for the other rooms of the process.
actor Listening: SharingPart {
    nonisolated let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    /// The other rooms hear by it, and work until the last job has ended.
    func run() async {
        await links.listen.run { await loop() }
    }

    private func loop() async {
        var generation = links.listen.generation
        await RetryingLoop.run { _ throws(PostgresError) in
            let connection = try await links.listen.connection()
            if generation != links.listen.generation {
                generation = links.listen.generation
                // Tried, not waited for: any login can see the number, and take the lock when our connection is lost. Without it we
                // are found dead only by our beat.
                try await connection.execute("select pg_try_advisory_lock($1)", [.int8(state.session)])
                try await hub.begin(on: connection)
            }
            try await hub.hear(on: connection)
        } failed: { error in
            if error == .cancelled { return .atOnce }
            hub.end()
            links.listen.drop()
            return .pause
        }
        hub.end()
    }
}
