import Jobs
import Postgres
import Queues
import Synchronization
import Telemetry
import Threads

extension JobWorker {
    /// The drain: what runs may finish until the deadline, then it is cancelled, then abandoned; all ends are recorded.
    func settle() async {
        log.info("draining", [("running", "\(desk.counts.running)"), ("handing_back", "\(desk.counts.waiting)")])
        let began = ContinuousClock.now
        desk.drain()
        tellStopping()
        for gatherer in gatherers.values { gatherer.drain() }
        wakeups.signal.fire()
        // What a claim brings that was in flight goes back as well.
        await claimsEnded.wait(for: .seconds(15))
        desk.handBack()
        await quiet(until: began + options.drainDeadline, orStop: true)
        let late = desk.runs
        if !late.isEmpty {
            log.warning("cancelling what still runs", [("running", "\(late.count)")])
            for run in late { run.cancel(.stopping) }
            await quiet(until: .now + options.stuckGrace, orStop: false)
            let stuck = desk.abandon()
            for run in stuck {
                log.error("abandoned a handler that ignores its cancellation", run.data)
            }
        }
        // What has ended still has to be recorded: the database may be away for a moment.
        let patience = Self.recordingPatience
        var deadline = max(ContinuousClock.now, began + options.drainDeadline) + patience
        while desk.unrecorded > 0, ContinuousClock.now < deadline {
            if stops.count > 1 { deadline = min(deadline, .now + patience) }
            await desk.changed.wait(for: .milliseconds(100))
        }
        isOver.withLock { $0 = true }
    }

    /// How long behind its drain a worker waits for a database that is away.
    package static var recordingPatience: Duration { .seconds(10) }

    /// Waits until nothing runs, at most until then; a second stop request ends the wait.
    private func quiet(until deadline: ContinuousClock.Instant, orStop: Bool) async {
        while desk.counts.running > 0, ContinuousClock.now < deadline {
            if orStop, stops.count > 1 { return }
            desk.handBack()
            await desk.changed.wait(for: .milliseconds(100))
        }
    }

    func close() async -> Report {
        let unrecorded = desk.unrecorded
        await closeSessions()
        await closeLinks()
        await notebook.pool.close()
        let totals = desk.totals
        let report = Report(
            finished: totals.finished, handedBack: totals.handedBack, refused: totals.refused,
            abandoned: totals.abandoned,
            unrecorded: unrecorded)
        guard isUp.withLock({ $0 }) else { return report }
        log.info(
            "worker stopped",
            [
                ("finished", "\(report.finished)"), ("handed_back", "\(report.handedBack)"),
                ("refused", "\(report.refused)"),
                ("abandoned", "\(report.abandoned)"), ("unrecorded", "\(report.unrecorded)"),
            ])
        return report
    }

    /// Nothing of ours is left in the database. One that comes back just now is waited for a little: a session that stays is taken
    /// for that of a lost worker.
    private func closeSessions() async {
        var open = opened.withLock { $0 }
        var backoff = Backoff()
        var random = SystemRandomNumberGenerator()
        let deadline = ContinuousClock.now + min(options.drainDeadline, .seconds(5))
        while let session = open.first {
            do throws(PostgresError) {
                try await houseLink.use { connection throws(PostgresError) in
                    // Whatever is still held there has not crashed: it goes back with nothing counted.
                    let left = try await Queue.leasesHeld(on: connection, session: session)
                    if !left.isEmpty {
                        _ = try await Queue.returnLeases(on: connection, session: session, numbers: left)
                    }
                    _ = try await Queue.closeSession(on: connection, session: session)
                }
                open.remove(session)
            } catch {
                complaints.say("a session could not be closed", error)
                guard error.isOutage || error.outcomeUnknown, ContinuousClock.now < deadline else { return }
                await pulse.wait(for: backoff.next(using: &random))
            }
        }
    }
}

/// Requests to stop, counted: the first drains, the second stops at once.
final class StopRequests: Sendable {
    private let requests = Mutex(0)
    private let signal = Signal()

    var count: Int { requests.withLock { $0 } }

    func request() {
        requests.withLock { $0 += 1 }
        signal.fire()
    }

    func firstRequest() async {
        while count == 0, !Task.isCancelled { await signal.wait() }
    }

    /// A pause that a request ends.
    func pause(_ limit: Duration) async {
        if count == 0 { await signal.wait(for: limit) }
    }
}
