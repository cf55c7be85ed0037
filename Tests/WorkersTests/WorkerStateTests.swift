import MillraceJobs
import MillraceQueues
import Testing

@testable import Workers

@Suite struct WorkerStateTests {
    @Test func `jobs of a loose claim start when their lease is read, and what was forgotten never does`() throws {
        var state = WorkerState(slots: 9)
        let jobs = (1...2).map { claimed($0, number: 8) }
        state.expect(taken(jobs + [claimed(3, number: 9)]), gates: [7])
        #expect(holds(state.next() == nil) && state.held == 3 && state.atHand == 0)
        #expect(Set(state.expected.map(\.number)) == [8, 9] && state.leaseNumbers == [8, 9] && !state.isEmpty)
        #expect(state.arrived(jobs, of: [8, 9, 16]) == [9])
        #expect(state.leaseNumbers == [8] && state.held == 2 && state.atHand == 2)
        let runs = try (0..<2).map { _ in makeRun(try some(state.next())) }
        #expect(runs.map(\.job.id) == [1, 2])
        #expect(holds(state.next() == nil) && state.expected.isEmpty)
        for run in runs {
            _ = state.started(run)
            state.ended(run, Ended(job: run.job, outcome: .succeeded))
        }
        let flush = try some(state.takeFlush())
        #expect(
            flush.slots.map(\.gate) == [7] && flush.slots.map(\.count) == [2], "the lease's own gates are given back")
    }

    @Test func `what waits to be recorded counts as work at hand, beyond two flushes`() throws {
        var state = WorkerState(slots: 20_000)
        state.accept((1...10_000).map { claimed($0) })
        for n in 1...10_000 {
            let run = makeRun(try some(state.next()))
            _ = state.started(run)
            state.ended(run, Ended(job: run.job, outcome: .succeeded))
            if n == 8000 { #expect(state.owed == 0) }
        }
        #expect(state.owed == 2000 && state.atHand == 0)
        let flush = try some(state.takeFlush())
        #expect(state.owed == 2000, "until it is recorded")
        #expect(state.flushed(flush, live: Set(flush.ended.map(\.job.number))).isEmpty && state.owed == 0)
    }

    @Test func `a loose claim that was lost before it was read does not start`() {
        var state = WorkerState(slots: 9, bounds: [1: 5])
        state.expect(taken([claimed(1, number: 8)]))
        #expect(state.room == [1: 4])
        #expect(state.lose([8]).isEmpty && state.held == 0 && state.leaseNumbers.isEmpty)
        #expect(state.arrived([claimed(1, number: 8)], of: [8]).isEmpty)
        #expect(holds(state.next() == nil) && state.isEmpty && state.room == [1: 5])
    }

    @Test func `what a loose claim took goes back with the rest, when it has been read`() throws {
        var state = WorkerState(slots: 9)
        state.accept([claimed(1)])
        state.expect(taken([claimed(2, number: 16)]))
        state.stopped = true
        state.handBack()
        let flush = try some(state.takeFlush())
        #expect(flush.ended.map(\.job.id) == [1] && !state.isEmpty)
        _ = state.flushed(flush, live: [8])
        #expect(state.arrived([claimed(2, number: 16)], of: [16]).isEmpty)
        let last = try some(state.takeFlush())
        #expect(last.ended.map(\.job.id) == [2] && last.ended.allSatisfy { $0.outcome == .released })
        _ = state.flushed(last, live: [16])
        #expect(state.isEmpty && state.held == 0)
    }

    @Test func `a lease is complete only when its other finishes are acknowledged`() throws {
        var state = WorkerState(slots: 2)
        state.accept([claimed(1), claimed(2)])
        let runs = try (0..<2).map { _ in makeRun(try some(state.next())) }
        for run in runs { _ = state.started(run) }
        state.ended(runs[0], Ended(job: runs[0].job, outcome: .succeeded))
        let first = try some(state.takeFlush())
        state.ended(runs[1], Ended(job: runs[1].job, outcome: .succeeded))
        #expect(holds(state.takeFlush() == nil))
        #expect(first.partial == [8] && first.complete.isEmpty)
        _ = state.flushed(first, live: [8])
        let second = try some(state.takeFlush())
        #expect(second.partial.isEmpty && second.complete.map(\.number) == [8] && second.complete.map(\.count) == [1])
    }

    @Test func `the first ends of a lease wait for the rest of it where others go, and only once`() throws {
        var state = WorkerState(slots: 9)
        state.accept((1...3).map { claimed($0, number: 8) } + (4...6).map { claimed($0, number: 16) })
        func end(_ count: Int) throws {
            for _ in 0..<count {
                let run = makeRun(try some(state.next()))
                _ = state.started(run)
                state.ended(run, Ended(job: run.job, outcome: .succeeded))
            }
        }
        try end(4)
        let first = try some(state.takeFlush(plenty: 3))
        #expect(first.ended.map(\.job.id) == [1, 2, 3] && first.complete.map(\.number) == [8] && first.partial.isEmpty)
        _ = state.flushed(first, live: [8])
        #expect(state.pendingCount == 1 && !state.isEmpty)
        try end(1)
        state.accept((7...9).map { claimed($0, number: 24) })
        let sixth = makeRun(try some(state.next()))
        _ = state.started(sixth)
        try end(3)
        let second = try some(state.takeFlush(plenty: 3))
        #expect(second.ended.map(\.job.id) == [4, 5, 7, 8, 9], "it has waited once")
        #expect(second.partial == [16] && second.complete.map(\.number) == [24])
        _ = state.flushed(second, live: [16, 24])
        state.ended(sixth, Ended(job: sixth.job, outcome: .succeeded))
        let third = try some(state.takeFlush(plenty: 3))
        #expect(third.complete.map(\.number) == [16] && third.complete.map(\.count) == [1])
    }

    @Test func `where few others go, the first ends of a lease do not wait`() throws {
        var state = WorkerState(slots: 9)
        state.accept((1...3).map { claimed($0, number: 8) } + (4...6).map { claimed($0, number: 16) })
        for _ in 1...4 {
            let run = makeRun(try some(state.next()))
            _ = state.started(run)
            state.ended(run, Ended(job: run.job, outcome: .succeeded))
        }
        let flush = try some(state.takeFlush(plenty: 4))
        #expect(flush.ended.map(\.job.id) == [1, 2, 3, 4] && flush.partial == [16])
    }

    @Test func `a refused finish loses the whole lease and counts as refused`() throws {
        var state = WorkerState(slots: 2)
        state.accept([claimed(1), claimed(2), claimed(3)])
        let first = makeRun(try some(state.next()))
        let second = makeRun(try some(state.next()))
        _ = state.started(first)
        _ = state.started(second)
        state.ended(first, Ended(job: first.job, outcome: .succeeded))
        let flush = try some(state.takeFlush())
        let loss = state.flushed(flush, live: [])
        #expect(loss.refused.map(\.job.id) == [1])
        #expect(loss.runs.map(\.job.id) == [2])
        #expect(state.waitingCount == 0)
        state.ended(second, Ended(job: second.job, outcome: .succeeded))
        #expect(holds(state.takeFlush() == nil))
        #expect(state.totals.refused == 2 && state.isEmpty)
    }

    @Test func `what has ended and is not recorded yet is refused with its lease, and said to be`() throws {
        var state = WorkerState(slots: 2)
        state.accept([claimed(1), claimed(2), claimed(3, number: 16)])
        for _ in 1...2 {
            let run = makeRun(try some(state.next()))
            _ = state.started(run)
            state.ended(run, Ended(job: run.job, outcome: .succeeded))
        }
        let loss = state.lose([8])
        #expect(loss.runs.isEmpty && Set(loss.refused.map(\.job.id)) == [1, 2])
        #expect(holds(state.takeFlush() == nil))
        #expect(state.totals.refused == 2 && state.leaseNumbers == [16])
    }

    @Test func `a run whose lease was lost before it began must not begin`() throws {
        var state = WorkerState(slots: 1)
        state.accept([claimed(1)])
        let run = makeRun(try some(state.next()))
        #expect(holds(state.lose([8]).isEmpty))
        #expect(holds(!state.started(run)))
    }

    @Test func `jobs of a queue at its bound are passed over, and start when a slot of theirs is free`() throws {
        var state = WorkerState(slots: 10, bounds: [2: 1])
        let narrow = Lane(queue: 2, priority: 0, line: .normal)
        state.accept([claimed(1, lane: narrow), claimed(2, lane: narrow), claimed(3)])
        let first = makeRun(try some(state.next()))
        _ = state.started(first)
        let third = try some(state.next())
        #expect(third.id == 3)
        #expect(holds(state.next() == nil))
        #expect(!holds(state.ended(makeRun(third), nil)), "it never ran here")
        #expect(
            !holds(state.ended(first, Ended(job: first.job, outcome: .succeeded))),
            "the second was taken beyond the bound")
        let second = makeRun(try some(state.next()))
        #expect(second.job.id == 2)
        _ = state.started(second)
        #expect(holds(state.ended(second, nil)), "claims have passed its queue over until now")
    }

    /// A tenant's jobs stand in a line of their own, which has no bound: its queue has.
    @Test func `a queue at its bound by the jobs of a tenant is told of when one ends`() throws {
        var state = WorkerState(slots: 10)
        state.setBound(1, line: 20, of: 2)
        state.accept([claimed(1, lane: Lane(queue: 20, priority: 0, line: .normal))])
        #expect(state.room == [2: 0])
        let run = makeRun(try some(state.next()))
        _ = state.started(run)
        #expect(holds(state.ended(run, nil)))
        #expect(state.room == [2: 1])
    }

    @Test func `suspects are counted, and a lone one excludes all others`() throws {
        var state = WorkerState(slots: 100)
        #expect(state.allowance.suspects == 16 && state.allowance.lone)
        state.accept((1...16).map { claimed($0, lane: Lane(queue: 1, priority: 4, line: .suspect)) })
        #expect(state.allowance.suspects == 0 && !state.allowance.lone)
        _ = state.lose([8])
        #expect(state.allowance.suspects == 16 && state.allowance.lone)
        state.accept([claimed(20, number: 20, lane: Lane(queue: 1, priority: 4, line: .lone))])
        #expect(state.allowance.suspects == 0 && !state.allowance.lone)
    }

    @Test func `what has not started is handed back in one flush, without an attempt`() throws {
        var state = WorkerState(slots: 1)
        state.accept([claimed(1), claimed(2), claimed(3)])
        let run = makeRun(try some(state.next()))
        _ = state.started(run)
        state.stopped = true
        state.handBack()
        #expect(holds(state.next() == nil))
        let flush = try some(state.takeFlush())
        #expect(flush.ended.map(\.job.id) == [2, 3] && flush.ended.allSatisfy { $0.outcome == .released })
        _ = state.flushed(flush, live: [8])
        #expect(state.totals.handedBack == 2)
    }

    @Test func `what was claimed for a pace that has not lasted goes back`() throws {
        var state = WorkerState(slots: 2)
        state.accept((1...6).map { claimed($0, number: 8) })
        var runs: [Run] = []
        func start() throws {
            let run = makeRun(try some(state.next()))
            _ = state.started(run)
            runs.append(run)
        }
        func end() { state.ended(runs[0], Ended(job: runs.removeFirst().job, outcome: .succeeded)) }
        try start()
        try start()
        #expect(holds(!state.handBackHoarded()), "they have only come")
        for _ in 1...4 {
            end()
            try start()
        }
        #expect(holds(!state.handBackHoarded()), "all that waited has been taken")
        state.accept((7...9).map { claimed($0, number: 16) })
        #expect(holds(!state.handBackHoarded()))
        end()
        try start()
        #expect(holds(state.handBackHoarded()), "one was taken, and two wait since the last look")
        #expect(holds(state.held == 2 && !state.handBackHoarded()))
        let flush = try some(state.takeFlush())
        #expect(flush.ended.filter { $0.outcome == .released }.map(\.job.id) == [8, 9])
    }

    @Test func `an abandoned run's job goes back, and its late end is not told`() throws {
        var state = WorkerState(slots: 1)
        state.accept([claimed(1)])
        let run = makeRun(try some(state.next()))
        _ = state.started(run)
        #expect(holds(state.abandon(jitter: 0.5).map(\.job.id) == [1]))
        state.ended(run, Ended(job: run.job, outcome: .succeeded))
        let flush = try some(state.takeFlush())
        #expect(flush.ended.map(\.outcome) == [.released])
        _ = state.flushed(flush, live: [8])
        #expect(state.isEmpty && state.totals.abandoned == 1)
    }

    @Test(arguments: [
        (CancelReason.timeout, Outcome.retried), (.requested, .cancelled), (.stopping, .released), (.cutOff, .released),
    ])
    func `an abandoned run has used its attempt at its time limit, and not where only the worker stopped`(
        reason: CancelReason, outcome: Outcome
    ) throws {
        var state = WorkerState(slots: 1)
        state.accept([claimed(1)])
        let run = makeRun(try some(state.next()))
        _ = state.started(run)
        run.cancel(reason)
        run.cancel(.stopping)
        #expect(holds(state.abandon(jitter: 0.5).count == 1))
        #expect(try some(state.takeFlush()).ended.map(\.outcome) == [outcome])
    }

    @Test func `tallies count what was recorded, and come back when they could not be sent`() throws {
        var state = WorkerState(slots: 9)
        state.accept((1...7).map { claimed($0) })
        for outcome in Outcome.allCases {
            let run = makeRun(try some(state.next()))
            _ = state.started(run)
            state.ended(run, Ended(job: run.job, outcome: outcome, milliseconds: 10))
        }
        _ = state.flushed(try some(state.takeFlush()), live: [8])
        let key = TallyKey(queue: 1, kind: 1)
        let taken = state.takeTallies()
        var expected = RunTally()
        expected.succeeded = 1
        expected.cancelled = 1
        expected.dead = 1
        expected.failed = 2
        expected.snoozed = 2
        expected.milliseconds = 70
        // All but the released one.
        expected.waits = 6
        for _ in 0..<6 { expected.times.add(milliseconds: 10) }
        #expect(taken == [key: expected])
        #expect(holds(state.takeTallies().isEmpty))
        state.putBack(tallies: taken)
        #expect(holds(state.takeTallies() == taken))
    }
}
