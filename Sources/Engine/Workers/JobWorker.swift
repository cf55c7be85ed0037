import MillraceJobs
import Postgres
package import Telemetry
import Threads

/// A worker process: claims jobs, runs them, records how they ended, and stops without losing any.
///
/// Each of its parts can be read alone: a part owns one loop or a few, sleeps on the signals of what the parts share, and ends when its
/// task is cancelled. `run()` starts them in two groups. Those of the first end with the drain; those of the second outlive it, for what
/// has ended must still be recorded.
package final class JobWorker: Sendable {
    /// Of Millrace: every program and every session shows this one.
    package static let version = "0.2.0"

    let shared: WorkerShared
    private let running: Running
    private let reports: ReportWriter
    private let sessions: SessionKeeping
    private let listening: Listening

    /// Claim, read, make due, open, tell, fire: these parts end when the drain has begun.
    private let working: [any WorkerPart]
    /// Beat, watch, record, cancel, report: these live on until the last job has ended.
    private let living: [any WorkerPart]

    package init(options: Options, handlers: [Handler], middleware: [Middleware] = [], log: Log) {
        shared = WorkerShared(options, kindNames: handlers.map(\.kind), log: log)
        reports = ReportWriter(shared)
        running = Running(shared, reports, handlers, middleware)
        sessions = SessionKeeping(shared, running)
        listening = Listening(shared)
        working = [
            Claiming(shared, running), Reading(shared, running), LargeJobReading(shared, running), Promoting(shared),
            Sweeping(shared), LateCommits(shared), LaneLooking(shared), GateOpening(shared), FlowTelling(shared),
            SignalTelling(shared),
            ScheduleFiring(shared), OperationStepping(shared),
        ]
        living = [
            sessions, Rescuing(shared), Finishing(shared), Cancelling(shared), Sampling(shared), reports,
            SlotSharing(shared, running),
        ]
        _ = shared.hub.host()
        shared.hub.heed(["millrace"]) { [weak shared] news in shared?.heard(news) }
    }

    package var kindNames: [String] { shared.kindNames }
    package var health: Health { shared.health }

    /// Stops claiming, hands back what has not started, lets the rest finish until the deadline. A second call stops at once.
    package func drain() {
        shared.stops.request()
    }

    /// Returns when the worker has started; for tests.
    package func hasStarted() async {
        await shared.started.wait()
    }

    /// Runs until drained. What it could not settle is in the report. A cancellation of the caller's task drains too: it stands for a
    /// request to stop, and what is under way ends in order.
    package func run() async throws -> Report {
        // One that serves rooms may have no jobs to do.
        guard !kindNames.isEmpty || !shared.options.rooms.isEmpty else { throw Failure.noHandlers }
        return try await withTaskCancellationHandler {
            // In a cancelled task its waits and statements would end at once, and the jobs have to go back.
            try await uncancelled { try await live() }
        } onCancel: {
            drain()
        }
    }

    private func live() async throws -> Report {
        if shared.options.build == nil { _ = await Thread.run(name: "mr-build") { ProgramBuild.hash } }
        let opened: Bool?
        do {
            opened = try await sessions.open()
        } catch {
            _ = await close()
            throw error
        }
        guard let direct = opened else {
            shared.tellStopping()
            return await close()
        }
        shared.hasStarted(direct: direct)
        await withTaskGroup(of: Void.self) { group in
            // Awaited below, after the drain.
            let outliving = Task { await runAll(living + (direct ? [listening] : [Following(hub: shared.hub)])) }
            group.addTask { await self.runAll(self.working + (direct ? [self.shared.sleepLock] : [])) }
            await shared.stops.firstRequest()
            await Stopping(shared, running).run()
            group.cancelAll()
            await group.waitForAll()
            outliving.cancel()
            await outliving.value
        }
        return await close()
    }

    private func runAll(_ parts: [any WorkerPart]) async {
        await withTaskGroup(of: Void.self) { group in
            for part in parts { group.addTask { await part.run() } }
        }
    }

    private func close() async -> Report {
        let unrecorded = shared.state.unrecorded
        await sessions.close()
        if let kept = shared.options.kept { await kept.keep(shared.links) } else { await shared.links.close() }
        await reports.pool.close()
        return shared.hasStopped(unrecorded: unrecorded)
    }
}

/// One part of a worker: `run` returns when its task is cancelled, and everything it started has ended.
protocol WorkerPart: Sendable {
    func run() async
}

/// A part that works with what all of them share.
protocol SharingPart: WorkerPart {
    var shared: WorkerShared { get }
}

extension SharingPart {
    nonisolated var options: JobWorker.Options { shared.options }
    nonisolated var log: Log { shared.log }
    nonisolated var limitedLog: LogLimiter { shared.limitedLog }
    nonisolated var state: WorkerStateGuard { shared.state }
    nonisolated var catalog: WorkCatalog { shared.catalog }
    nonisolated var links: WorkerLinks { shared.links }
    nonisolated var outage: Outage { shared.outage }
    nonisolated var stalls: Stalls { shared.stalls }
    nonisolated var hub: NotificationHub { shared.hub }
    nonisolated var sleepLock: QueueSleepLock { shared.sleepLock }
    nonisolated var wakeups: Wakeups { shared.wakeups }
    nonisolated var gates: Gates { shared.gates }
}
