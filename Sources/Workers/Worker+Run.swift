import FoundationEssentials
import Jobs
import Queues
import Synchronization
import Telemetry
import Threads

extension Worker {
    /// Starts as many waiting jobs as slots are free.
    func startRuns() {
        while let run = desk.next({ makeRun($0) }) {
            // One task a job, outside any group: each must be cancellable by itself. The drain waits for all of them.
            run.attach(Task { await self.perform(run) })
        }
    }

    private func makeRun(_ job: Claimed) -> Run {
        let handler = kinds.withLock { $0[job.kind] }
        let options = job.options.flatMap { try? JSONDecoder().decode(RunOptions.self, from: Data($0)) }
        let timeout = (options?.timeout.map { Duration.seconds($0) } ?? handler?.timeout).map {
            $0 + (handler?.chunks?.waiting ?? .zero)  // the wait for company is no part of the work
        }
        let context = Context(
            id: job.id, kind: handler?.kind ?? "?", queue: queues.withLock { $0.names[job.lane.queue] } ?? "?",
            attempt: Int(job.attempt) + 1,
            maxAttempts: job.maxAttempts.map { Int($0) } ?? handler?.retries.attempts ?? 1,
            crashes: Int(job.crashes), enqueuedAt: job.enqueuedAt, claimedAt: job.claimedAt,
            session: desk.session, number: job.number, tenant: job.tenant,
            tags: job.tags, metadata: job.metadata, abilities: abilities)
        let run = Run(job: job, context: context, timeout: timeout, whenCutOff: handler?.whenCutOff ?? .keepRunning)
        if run.deadline != nil { pulse.fire() }
        return run
    }

    private func perform(_ run: Run) async {
        let job = run.job
        guard let handler = kinds.withLock({ $0[job.kind] }) else {
            desk.ended(run, Ended(job: job, outcome: .released, wait: .zero))
            return
        }
        let options = job.options.flatMap { try? JSONDecoder().decode(RunOptions.self, from: Data($0)) }
        var end: Ended?
        if job.expired {
            end = Ended(job: job, outcome: .cancelled, error: "expired before it could run")
        } else {
            end = await judge(run, handler: handler, pauses: options?.backoff)
            let (result, reports) = run.context.leavings
            if end?.outcome == .succeeded { end?.result = result }
            if reports { await notebook.settle(run.context) }
        }
        if let end, end.outcome == .dead {
            log.warning("a job died", run.data + [("error", end.error ?? "")])
        } else if let end, end.outcome == .retried {
            log.info("a run failed and will be tried again", run.data + [("error", end.error ?? "")])
        } else if end == nil {
            log.warning("a run ended after its lease was lost; its result is refused", run.data)
        } else {
            log.debug("a run ended", run.data)
        }
        desk.ended(run, end)
        startRuns()
    }

    private func judge(_ run: Run, handler: Handler, pauses: RunOptions.Pauses?) async -> Ended? {
        var retries = handler.retries
        if let base = pauses?.base { retries.base = .seconds(min(max(0.001, base), 604_800)) }
        if let cap = pauses?.cap { retries.cap = .seconds(min(max(0.001, cap), 604_800)) }
        let said = await handle(run, handler: handler)
        return Judge(retries: retries, maxAttempts: run.context.maxAttempts).end(
            run.job, said: said, cancelled: run.context.cancelReason,
            milliseconds: Int32(clamping: Int64(run.started.duration(to: .now) / .milliseconds(1))),
            jitter: Double.random(in: 0...1))
    }

    private func handle(_ run: Run, handler: Handler) async -> Judge.Said {
        let context = run.context
        let body = gatherer(for: run.job, handler).map { $0.run } ?? handler.body
        var step: @Sendable () async throws -> Verdict = {
            try await body(try self.opened(run.job, handler), context)
        }
        for layer in middleware.reversed() {
            let inner = step
            step = { try await layer(context, inner) }
        }
        do {
            return .verdict(try await step())
        } catch let failure as any JobFailure {
            return .threw(Self.sentence(failure), failure.retry)
        } catch {
            return .threw(Self.sentence(error), .usual)
        }
    }

    /// nil: it runs by itself. A suspect does, whatever its kind: a chunk would take innocents down with it.
    private func gatherer(for job: Claimed, _ handler: Handler) -> (any Gathering)? {
        switch job.lane.line {
        case .putBack, .normal: gatherers[handler.kind]
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
    }
}
