import MillraceJobs
import MillraceQueues
import Postgres
import Synchronization
import Telemetry
import Threads

/// Records how runs have ended, in batches, one flush in flight. What cannot be recorded now waits; nothing is given up before the drain
/// is over.
actor Finishing: SharingPart {
    nonisolated let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    func run() async {
        await links.flush.run { await loop() }
    }

    private func loop() async {
        var last = ContinuousClock.now - .seconds(1)
        while true {
            if state.pending == 0 {
                if Task.isCancelled { return }
                await state.flush.wait()
                continue
            }
            // A lone end goes out at once; under load, a few milliseconds gather many, and where they come fast, a few more.
            if state.pending < 500, last.duration(to: .now) < .milliseconds(20), !state.isDraining {
                try? await Task.sleep(for: .milliseconds(4))
            }
            if (200..<2000).contains(state.pending), !state.isDraining { try? await Task.sleep(for: .milliseconds(4)) }
            guard let flush = state.takeFlush() else {
                // a flush was given up: the database stayed away through the whole drain
                if Task.isCancelled { return }
                continue
            }
            last = .now
            // Not interrupted by the loop's own cancellation: these jobs have ended.
            await links.flush.runUninterrupted { [self] in await record(await believed(flush)) }
        }
    }

    private func record(_ flush: Flush, unsure isUnsure: Bool = false) async {
        var backoff = Backoff()
        var unsure = isUnsure
        var collided = false
        stalls.began(.recording)
        while true {
            do throws(PostgresError) {
                let live = try await send(flush, unsure: unsure)
                stalls.ended(.recording)
                settle(flush, live: live)
                return
            } catch {
                guard error.isOutage || error == .cancelled || error.outcomeUnknown else {
                    // A try whose answer was lost may still have been under way when we asked for it, and has committed since.
                    if unsure, error.sqlState == "23505", !collided {
                        collided = true
                        continue
                    }
                    await isolate(flush, error)
                    return
                }
                limitedLog.say("what has ended cannot be recorded yet; it is kept and tried again", error)
                if error.outcomeUnknown { (unsure, collided) = (true, false) }
                if error.isSlowness, flush.ended.count > 1 {
                    for half in halves(of: flush) { await record(half, unsure: true) }
                    return
                }
                if shared.isOver.withLock({ $0 }) { return }
                try? await Task.sleep(for: backoff.next())
            }
        }
    }

    /// A handler that says it has recorded its own end is asked to prove it: the database must know.
    private func believed(_ flush: Flush) async -> Flush {
        let claims = flush.ended.filter(\.isRecorded)
        guard !claims.isEmpty else { return flush }
        let known = try? await RetryingLoop.value(
            pause: { (pause) throws(PostgresError) in try? await Task.sleep(for: pause) },
            of: { () throws(PostgresError) in
                let session = state.session
                return try await links.flush.use { connection throws(PostgresError) in
                    try await Queue.recorded(on: connection, session: session, claims)
                }
            },
            failed: { error throws(PostgresError) in
                if shared.isOver.withLock({ $0 }) { throw error }
                return true
            })
        guard let known else { return flush }
        return state.regroup(
            flush.ended.map { end in
                guard end.isRecorded, !known.contains(end.job.id) else { return end }
                return Ended(
                    job: end.job, outcome: .retried, milliseconds: end.milliseconds,
                    error: "the handler said that its transaction had recorded the end, and it had not",
                    wait: .seconds(1))
            })
    }

    /// After a lost answer, first asks what was recorded: a flush is one transaction, so if any of it is, all of it is.
    private func send(_ flush: Flush, unsure: Bool) async throws(PostgresError) -> Set<Int64> {
        let session = state.session
        return try await links.flush.use { connection throws(PostgresError) in
            if unsure {
                let recorded = try await Queue.recorded(on: connection, session: session, flush.toRecord)
                if !recorded.isEmpty {
                    return Set(flush.toRecord.filter { recorded.contains($0.job.id) }.map(\.job.number))
                }
            }
            return try await Queue.finish(on: connection, session: session, flush)
        }
    }

    private func settle(_ flush: Flush, live: Set<Int64>) {
        state.flushed(flush, live: live).settle(session: state.session, log: log)
        gates.ask(flush.slots.map(\.gate))
        let isRecorded = flush.ended.contains(where: \.isRecorded)
        if isRecorded { gates.askAll() }  // what they held, their own transactions have given back
        if live.contains(Queue.othersWait) || isRecorded { shared.flowEnds.fire() }
        if flush.ended.contains(where: { $0.outcome == .retried || $0.outcome == .snoozed }) { shared.promotion.fire() }
    }

    /// The database refuses the flush itself: one bad end must not hold up the others. Halves, down to the one.
    private func isolate(_ flush: Flush, _ error: PostgresError) async {
        guard flush.ended.count > 1 else {
            if var end = flush.ended.first, end.result != nil, error.sqlState?.hasPrefix("22") == true {
                // JSON to us and none to the database, which may have another encoding: a further run would end here again.
                end.result = nil
                end.outcome = .dead
                end.error = "its result could not be kept: \(error)"
                await record(state.regroup([end]))
                return
            }
            log.error(
                "an end could not be recorded; the job will be run again",
                (flush.ended.first.map { [("job.id", "\($0.job.id)")] } ?? []) + [("error", error.debugDescription)])
            settle(flush, live: [])
            state.requestReconcile()  // the lease still stands in the database, with its other jobs
            return
        }
        for half in halves(of: flush) { await record(half) }
    }

    private func halves(of flush: Flush) -> [Flush] {
        let middle = flush.ended.count / 2
        return [flush.ended[..<middle], flush.ended[middle...]].map { state.regroup(Array($0)) }
    }
}
