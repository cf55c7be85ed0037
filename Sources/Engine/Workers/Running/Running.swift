import FoundationEssentials
import MillraceJobs
import MillraceQueues
import Synchronization
import Telemetry
import Threads
import Traces

/// Runs jobs: a task a job, as many as slots are free.
///
/// No actor: ends and starts come from every thread at once, and what they change is `WorkerStateGuard`'s, behind its lock. Measured with an
/// actor that takes ends and makes the next runs: 3.4 µs of the worker's processor time for a job, instead of 2.9 µs; see there.
final class Running: Sendable {
    let shared: WorkerShared
    private let state: WorkerStateGuard
    private let reports: ReportWriter
    private let backend: RunBackend
    private let middleware: [Middleware]
    private let log: Log
    private let spans: RunSpans
    let handlers: [Handler]
    /// By kind, for the kinds that are worked in chunks.
    let chunkRunners: [String: any ChunkRunning]

    init(_ shared: WorkerShared, _ reports: ReportWriter, _ handlers: [Handler], _ middleware: [Middleware]) {
        self.shared = shared
        self.reports = reports
        self.handlers = handlers
        self.middleware = middleware
        state = shared.state
        log = shared.log
        spans = RunSpans(tracer: shared.options.tracer, worker: shared.options.name)
        backend = reports.backend
        chunkRunners = Dictionary(
            handlers.compactMap { handler in handler.chunks.map { (handler.kind, $0.open(shared.options.slots)) } },
            uniquingKeysWith: { first, _ in first })
    }

    /// Starts as many waiting jobs as slots are free.
    func startRuns() {
        var known = LookupCache()
        while let run = state.next({ makeRun($0, session: $1, &known) }) { start(run) }
    }

    /// One task a job at a time, outside any group: each must be cancellable by itself. The drain waits for all of them. Short jobs
    /// would spend more on their tasks than on their work, so a task goes on with the next job as long as none was cancelled.
    private func start(_ first: Run) {
        let own = OwnTask()
        let task = Task { await self.perform(from: first, in: own) }
        own.set(task)
        first.attach(task)
    }

    private func perform(from first: Run, in own: OwnTask) async {
        var run = first
        var known = LookupCache()
        var turns = 0
        while true {
            let end = await perform(run)
            let (next, wasFull) = state.ended(run, end) { makeRun($0, session: $1, &known) }
            // Claims passed its queue over while that was at its bound, and sleep now: they are told.
            if wasFull { shared.wakeups.hint(run.job.lane) }
            // A cancel that was meant for this run may still reach the task.
            guard run.detach(), !Task.isCancelled, let task = own.task else {
                if let next { start(next) }
                return
            }
            guard let next else { return }
            next.attach(task)
            run = next
            turns += 1
            if turns.isMultiple(of: 32) { await Task.yield() }  // others wait for this thread
        }
    }

    /// What was looked up for the last job: the next is mostly of the same kind and queue, and others look there at the same time.
    private struct LookupCache {
        var kind: (id: Int32, worked: WorkedKind)?
        var turn = 0
        var queue: (id: Int32, name: String)?
    }

    private func makeRun(_ job: Claimed, session: Int64, _ known: inout LookupCache) -> Run {
        let turn = shared.catalog.kindTurn
        if known.kind?.id != job.kind || known.turn != turn {
            known.kind = shared.catalog.kind(job.kind).map { (job.kind, $0) }
            known.turn = turn
        }
        if known.queue?.id != job.lane.queue {
            known.queue = shared.catalog.name(of: job.lane.queue).map { (job.lane.queue, $0) }
        }
        let kind = known.kind?.worked
        let options = job.options.flatMap { try? JSONDecoder().decode(RunOptions.self, from: Data($0)) }
        let timeout = (options?.timeout.map { Duration.seconds($0) } ?? kind?.handler.timeout).map {
            $0 + (kind?.handler.chunks?.waiting ?? .zero)  // the wait for company is no part of the work
        }
        let (kindName, queueName) = (kind?.handler.kind ?? "?", known.queue?.name ?? "?")
        let begun = spans.begin(job, kind: kindName, queue: queueName)
        let context = Context(
            id: job.id, kind: kindName, queue: queueName,
            attempt: Int(job.attempt) + 1,
            maxAttempts: job.maxAttempts.map { Int($0) } ?? kind?.handler.retries.attempts ?? 1,
            crashes: Int(job.crashes), enqueuedAt: job.enqueuedAt, claimedAt: job.claimedAt,
            session: session, number: job.number, tenant: job.tenant,
            tags: job.tags, metadata: job.metadata, undo: options?.undo, takesUndos: kind?.handler.takesUndos ?? false,
            version: options?.version, trace: begun.place, tracer: spans.tracer, backend: backend)
        let run = Run(
            job: job, context: context, kind: kind, timeout: timeout,
            whenCutOff: kind?.handler.whenCutOff ?? .keepRunning, span: begun.span)
        if run.deadline != nil { shared.pulse.fire() }
        return run
    }

    /// Nil: its lease was lost, and nobody wants to know.
    private func perform(_ run: Run) async -> Ended? {
        let job = run.job
        guard let kind = run.kind else {
            let end = Ended(job: job, outcome: .released, wait: .zero)
            spans.end(run.span, end)
            return end
        }
        let options = job.options.flatMap { try? JSONDecoder().decode(RunOptions.self, from: Data($0)) }
        var end: Ended?
        if job.expired {
            end = Ended(job: job, outcome: .cancelled, error: "expired before it could run")
        } else {
            end = await judge(run, kind: kind, pauses: options?.backoff)
            let (result, hasReported) = run.context.leavings
            if end?.outcome == .succeeded { end?.result = result }
            end?.waited = run.waited
            if hasReported { await reports.settle(run.context) }
        }
        spans.end(run.span, end)
        shared.options.observer?.ended(run.context, end?.outcome, run.started.duration(to: .now))
        if let end, end.outcome == .dead {
            log.warning("a job died", run.data + [("error", end.error ?? "")])
        } else if let end, end.outcome == .retried {
            log.info("a run failed and will be tried again", run.data + [("error", end.error ?? "")])
        } else if end == nil {
            log.warning("a run ended after its lease was lost; its result is refused", run.data)
        } else {
            log.debug("a run ended", run.data)
        }
        return end
    }

    private func judge(_ run: Run, kind: WorkedKind, pauses: RunOptions.Pauses?) async -> Ended? {
        var retries = kind.handler.retries
        if let base = pauses?.base { retries.base = .seconds(min(max(0.001, base), 604_800)) }
        if let cap = pauses?.cap { retries.cap = .seconds(min(max(0.001, cap), 604_800)) }
        var said = await TraceContext.within(run.context.trace) { await handle(run, kind: kind) }
        if run.context.isWaiting { said = .waits }
        if let undo = run.context.undo {
            switch said {
            case _ where run.context.hasUndone: said = .verdict(.done)
            case .verdict:
                let failure = UndoNotReached(step: undo.step, why: "the handler ended before it")
                said = .threw("\(failure)", .usual)
            case .threw, .waits: break
            }
        }
        return OutcomeMapper(retries: retries, maxAttempts: run.context.maxAttempts).end(
            run.job, said: said, cancelled: run.context.cancelReason,
            milliseconds: Int32(clamping: Int64(run.started.duration(to: .now) / .milliseconds(1))),
            jitter: Double.random(in: 0...1))
    }

    private func handle(_ run: Run, kind: WorkedKind) async -> OutcomeMapper.Said {
        let context = run.context
        let handler = kind.handler
        let body = chunkRunner(for: run.job, kind).map { $0.run } ?? handler.body
        do {
            guard !middleware.isEmpty else { return .verdict(try await body(try opened(run.job, handler), context)) }
            var step: @Sendable () async throws -> Verdict = {
                try await context.end { try await body(try self.opened(run.job, handler), context) }
            }
            for layer in middleware.reversed() {
                let inner = step
                step = { try await layer(context, inner) }
            }
            return .verdict(try await step())
        } catch let failure as any JobFailure {
            return .threw(Self.sentence(failure), failure.retry)
        } catch {
            return .threw(Self.sentence(error), .usual)
        }
    }

    /// nil: it runs by itself. A suspect does, whatever its kind: a chunk would take innocents down with it.
    private func chunkRunner(for job: Claimed, _ kind: WorkedKind) -> (any ChunkRunning)? {
        switch job.lane.line {
        case .putBack, .normal: kind.chunkRunner
        case .suspect, .lone: nil
        }
    }

    private static func sentence(_ error: any Error) -> String {
        let text = "\(error)"
        return text.isEmpty ? "\(type(of: error))" : text
    }
}

extension Run {
    /// For log lines.
    var data: [(String, String)] { context.data }
}

extension Context {
    /// For log lines.
    var data: [(String, String)] {
        [("job.id", "\(id)"), ("job.kind", kind), ("job.attempt", "\(attempt)"), ("job.token", token)]
            + (trace.map { [("trace_id", $0.trace.text), ("span_id", $0.span.text)] } ?? [])
    }
}

/// A kind that this worker knows, as its runs need it.
final class WorkedKind: Sendable {
    let handler: Handler
    let chunkRunner: (any ChunkRunning)?

    init(handler: Handler, chunkRunner: (any ChunkRunning)?) {
        self.handler = handler
        self.chunkRunner = chunkRunner
    }
}

/// How a task knows itself. Set right after it was made; until then it has nothing to hand on.
private final class OwnTask: Sendable {
    private let state = Mutex<Task<Void, Never>?>(nil)

    var task: Task<Void, Never>? { state.withLock { $0 } }

    func set(_ task: Task<Void, Never>) { state.withLock { $0 = task } }
}
