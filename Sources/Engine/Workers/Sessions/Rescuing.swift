import MillraceQueues
import Postgres
import Telemetry
import Threads

/// Watches over the other workers, and gives the jobs of a lost one to those that live. A rescue may be long, and this worker's own sign
/// of life does not wait for it.
actor Rescuing: SharingPart {
    nonisolated let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    func run() async {
        var watch = Watch(limits: options.watch)
        var generation = links.house.generation
        while !Task.isCancelled {
            do throws(PostgresError) {
                try await rescue(&watch, since: &generation)
            } catch {
                limitedLog.say("the watch over the other workers failed", error)
            }
            try? await Task.sleep(for: outage.lasts == nil ? options.beat : .milliseconds(250))
        }
    }

    private func rescue(_ watch: inout Watch, since generation: inout Int) async throws(PostgresError) {
        let signs = try await links.house.use { connection throws(PostgresError) in
            try await Queue.watch(on: connection, session: state.session)
        }
        // Behind the look, which may have opened the connection: while it was away nobody's beats were seen.
        if generation != links.house.generation {
            watch.reconnected()
            generation = links.house.generation
        }
        for (session, beat) in watch.look(signs, at: .now) {
            log.warning("a worker is lost; rescuing its jobs", [("session", String(session, radix: 16))])
            let began = ContinuousClock.now
            let rescue = try await links.house.use { connection throws(PostgresError) in
                try await Queue.rescue(on: connection, session: session, beat: beat)
            }
            log.warning(
                "jobs were rescued",
                [
                    ("session", String(session, radix: 16)), ("jobs", "\(rescue.jobs)"),
                    ("quarantined", "\(rescue.quarantined)"),
                    ("took_ms", "\(Int(began.duration(to: .now) / .milliseconds(1)))"),
                ])
            if rescue.jobs > 0 {
                wakeups.lookEverywhere()
                gates.askAll()
                shared.flowEnds.fire()
            }
        }
    }
}
