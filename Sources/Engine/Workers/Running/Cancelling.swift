import MillraceJobs
import MillraceQueues
import Postgres
import Telemetry
import Threads

/// Cancels runs: at their time limit, and on request from outside. Tells of handlers that ignore both.
actor Cancelling: SharingPart {
    nonisolated let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    func run() async {
        var asked = ContinuousClock.now - .seconds(1)
        while !Task.isCancelled {
            let now = ContinuousClock.now
            var next = now + .milliseconds(500)
            let runs = state.runs
            for run in runs {
                if let deadline = run.deadline {
                    if deadline <= now { run.cancel(.timeout) } else { next = min(next, deadline) }
                }
                if run.turnsStuck(at: now, grace: options.stuckGrace) {
                    log.warning("a handler ignores its cancellation and keeps its slot", run.data)
                }
            }
            if !runs.isEmpty, outage.lasts == nil, asked.duration(to: now) >= .milliseconds(450) {
                asked = now
                do throws(PostgresError) {
                    let cancels = try await links.house.use { connection throws(PostgresError) in
                        try await Queue.cancels(on: connection, session: state.session)
                    }
                    for cancel in cancels {
                        state.run(number: cancel.number, id: cancel.job)?.cancel(.requested)
                    }
                } catch {
                    limitedLog.say("reading cancels failed", error)
                }
            }
            // Every run with a timeout fires the pulse: not more often than every 20 ms for all of them.
            try? await Task.sleep(for: .milliseconds(20))
            let pause = ContinuousClock.now.duration(to: next)
            if pause > .zero { await shared.pulse.wait(for: pause) }
        }
    }
}
