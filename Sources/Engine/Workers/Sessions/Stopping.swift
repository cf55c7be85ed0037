import MillraceJobs
import MillraceQueues
import Postgres
import Synchronization
import Telemetry
import Threads

/// The end of a worker: what runs may finish until the deadline, then it is cancelled, then abandoned; all ends are recorded.
actor Stopping: SharingPart {
    nonisolated let shared: WorkerShared
    private let running: Running

    init(_ shared: WorkerShared, _ running: Running) {
        self.shared = shared
        self.running = running
    }

    func run() async {
        log.info("draining", [("running", "\(state.counts.running)"), ("handing_back", "\(state.counts.waiting)")])
        let began = ContinuousClock.now
        state.drain()
        shared.tellStopping()
        for runner in running.chunkRunners.values { runner.drain() }
        wakeups.signal.fire()
        // What a claim brings that was in flight goes back as well.
        await shared.claimsEnded.wait(for: .seconds(15))
        state.handBack()
        await quiet(until: began + options.drainDeadline, orStop: true)
        let late = state.runs
        if !late.isEmpty {
            log.warning("cancelling what still runs", [("running", "\(late.count)")])
            for run in late { run.cancel(.stopping) }
            await quiet(until: .now + options.stuckGrace, orStop: false)
            let stuck = state.abandon()
            for run in stuck {
                log.error("abandoned a handler that ignores its cancellation", run.data)
            }
        }
        // What has ended still has to be recorded: the database may be away for a moment.
        let patience = JobWorker.recordingPatience
        var deadline = max(ContinuousClock.now, began + options.drainDeadline) + patience
        while state.unrecorded > 0, ContinuousClock.now < deadline {
            if shared.stops.count > 1 { deadline = min(deadline, .now + patience) }
            await state.changed.wait(for: .milliseconds(100))
        }
        shared.isOver.withLock { $0 = true }
    }

    /// Waits until nothing runs, at most until then; a second stop request ends the wait.
    private func quiet(until deadline: ContinuousClock.Instant, orStop: Bool) async {
        while state.counts.running > 0, ContinuousClock.now < deadline {
            if orStop, shared.stops.count > 1 { return }
            state.handBack()
            await state.changed.wait(for: .milliseconds(100))
        }
    }
}

extension JobWorker {
    /// How long behind its drain a worker waits for a database that is away.
    package static var recordingPatience: Duration { .seconds(10) }
}
