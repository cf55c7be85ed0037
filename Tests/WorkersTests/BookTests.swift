import Jobs
import Queues
import Testing

@testable import Workers

@Suite struct BookTests {
    @Test func `jobs of a loose claim start when their lease is read, and what was forgotten never does`() throws {
        var book = WorkerState(slots: 9)
        let jobs = (1...2).map { claimed($0, number: 8) }
        book.expect(taken(jobs + [claimed(3, number: 9)]), gates: [7])
        #expect(holds(book.next() == nil) && book.held == 3 && book.atHand == 0)
        #expect(Set(book.expected.map(\.number)) == [8, 9] && book.leaseNumbers == [8, 9] && !book.isEmpty)
        #expect(book.arrived(jobs, of: [8, 9, 16]) == [9])
        #expect(book.leaseNumbers == [8] && book.held == 2 && book.atHand == 2)
        let runs = try (0..<2).map { _ in makeRun(try some(book.next())) }
        #expect(runs.map(\.job.id) == [1, 2])
        #expect(holds(book.next() == nil) && book.expected.isEmpty)
        for run in runs {
            _ = book.started(run)
            book.ended(run, Ended(job: run.job, outcome: .succeeded))
        }
        let flush = try some(book.takeFlush())
        #expect(
            flush.slots.map(\.gate) == [7] && flush.slots.map(\.count) == [2], "the lease's own gates are given back")
    }

    @Test func `what waits to be recorded counts as work at hand, beyond two flushes`() throws {
        var book = WorkerState(slots: 20_000)
        book.accept((1...10_000).map { claimed($0) })
        for n in 1...10_000 {
            let run = makeRun(try some(book.next()))
            _ = book.started(run)
            book.ended(run, Ended(job: run.job, outcome: .succeeded))
            if n == 8000 { #expect(book.owed == 0) }
        }
        #expect(book.owed == 2000 && book.atHand == 0)
        let flush = try some(book.takeFlush())
        #expect(book.owed == 2000, "until it is recorded")
        #expect(book.flushed(flush, live: Set(flush.ended.map(\.job.number))).isEmpty && book.owed == 0)
    }

    @Test func `a loose claim that was lost before it was read does not start`() {
        var book = WorkerState(slots: 9, bounds: [1: 5])
        book.expect(taken([claimed(1, number: 8)]))
        #expect(book.room == [1: 4])
        #expect(book.lose([8]).isEmpty && book.held == 0 && book.leaseNumbers.isEmpty)
        #expect(book.arrived([claimed(1, number: 8)], of: [8]).isEmpty)
        #expect(holds(book.next() == nil) && book.isEmpty && book.room == [1: 5])
    }

    @Test func `what a loose claim took goes back with the rest, when it has been read`() throws {
        var book = WorkerState(slots: 9)
        book.accept([claimed(1)])
        book.expect(taken([claimed(2, number: 16)]))
        book.stopped = true
        book.handBack()
        let flush = try some(book.takeFlush())
        #expect(flush.ended.map(\.job.id) == [1] && !book.isEmpty)
        _ = book.flushed(flush, live: [8])
        #expect(book.arrived([claimed(2, number: 16)], of: [16]).isEmpty)
        let last = try some(book.takeFlush())
        #expect(last.ended.map(\.job.id) == [2] && last.ended.allSatisfy { $0.outcome == .released })
        _ = book.flushed(last, live: [16])
        #expect(book.isEmpty && book.held == 0)
    }

    @Test func `a lease is complete only when its other finishes are acknowledged`() throws {
        var book = WorkerState(slots: 2)
        book.accept([claimed(1), claimed(2)])
        let runs = try (0..<2).map { _ in makeRun(try some(book.next())) }
        for run in runs { _ = book.started(run) }
        book.ended(runs[0], Ended(job: runs[0].job, outcome: .succeeded))
        let first = try some(book.takeFlush())
        book.ended(runs[1], Ended(job: runs[1].job, outcome: .succeeded))
        #expect(holds(book.takeFlush() == nil))
        #expect(first.partial == [8] && first.complete.isEmpty)
        _ = book.flushed(first, live: [8])
        let second = try some(book.takeFlush())
        #expect(second.partial.isEmpty && second.complete.map(\.number) == [8] && second.complete.map(\.count) == [1])
    }

    @Test func `the first ends of a lease wait for the rest of it where others go, and only once`() throws {
        var book = WorkerState(slots: 9)
        book.accept((1...3).map { claimed($0, number: 8) } + (4...6).map { claimed($0, number: 16) })
        func end(_ count: Int) throws {
            for _ in 0..<count {
                let run = makeRun(try some(book.next()))
                _ = book.started(run)
                book.ended(run, Ended(job: run.job, outcome: .succeeded))
            }
        }
        try end(4)
        let first = try some(book.takeFlush(plenty: 3))
        #expect(first.ended.map(\.job.id) == [1, 2, 3] && first.complete.map(\.number) == [8] && first.partial.isEmpty)
        _ = book.flushed(first, live: [8])
        #expect(book.pendingCount == 1 && !book.isEmpty)
        try end(1)
        book.accept((7...9).map { claimed($0, number: 24) })
        let sixth = makeRun(try some(book.next()))
        _ = book.started(sixth)
        try end(3)
        let second = try some(book.takeFlush(plenty: 3))
        #expect(second.ended.map(\.job.id) == [4, 5, 7, 8, 9], "it has waited once")
        #expect(second.partial == [16] && second.complete.map(\.number) == [24])
        _ = book.flushed(second, live: [16, 24])
        book.ended(sixth, Ended(job: sixth.job, outcome: .succeeded))
        let third = try some(book.takeFlush(plenty: 3))
        #expect(third.complete.map(\.number) == [16] && third.complete.map(\.count) == [1])
    }

    @Test func `where few others go, the first ends of a lease do not wait`() throws {
        var book = WorkerState(slots: 9)
        book.accept((1...3).map { claimed($0, number: 8) } + (4...6).map { claimed($0, number: 16) })
        for _ in 1...4 {
            let run = makeRun(try some(book.next()))
            _ = book.started(run)
            book.ended(run, Ended(job: run.job, outcome: .succeeded))
        }
        let flush = try some(book.takeFlush(plenty: 4))
        #expect(flush.ended.map(\.job.id) == [1, 2, 3, 4] && flush.partial == [16])
    }

    @Test func `a refused finish loses the whole lease and counts as refused`() throws {
        var book = WorkerState(slots: 2)
        book.accept([claimed(1), claimed(2), claimed(3)])
        let first = makeRun(try some(book.next()))
        let second = makeRun(try some(book.next()))
        _ = book.started(first)
        _ = book.started(second)
        book.ended(first, Ended(job: first.job, outcome: .succeeded))
        let flush = try some(book.takeFlush())
        let loss = book.flushed(flush, live: [])
        #expect(loss.refused.map(\.job.id) == [1])
        #expect(loss.runs.map(\.job.id) == [2])
        #expect(book.waitingCount == 0)
        book.ended(second, Ended(job: second.job, outcome: .succeeded))
        #expect(holds(book.takeFlush() == nil))
        #expect(book.totals.refused == 2 && book.isEmpty)
    }

    @Test func `what has ended and is not recorded yet is refused with its lease, and said to be`() throws {
        var book = WorkerState(slots: 2)
        book.accept([claimed(1), claimed(2), claimed(3, number: 16)])
        for _ in 1...2 {
            let run = makeRun(try some(book.next()))
            _ = book.started(run)
            book.ended(run, Ended(job: run.job, outcome: .succeeded))
        }
        let loss = book.lose([8])
        #expect(loss.runs.isEmpty && Set(loss.refused.map(\.job.id)) == [1, 2])
        #expect(holds(book.takeFlush() == nil))
        #expect(book.totals.refused == 2 && book.leaseNumbers == [16])
    }

    @Test func `a run whose lease was lost before it began must not begin`() throws {
        var book = WorkerState(slots: 1)
        book.accept([claimed(1)])
        let run = makeRun(try some(book.next()))
        #expect(holds(book.lose([8]).isEmpty))
        #expect(holds(!book.started(run)))
    }

    @Test func `jobs of a queue at its bound are passed over, and start when a slot of theirs is free`() throws {
        var book = WorkerState(slots: 10, bounds: [2: 1])
        let narrow = Lane(queue: 2, priority: 0, line: .normal)
        book.accept([claimed(1, lane: narrow), claimed(2, lane: narrow), claimed(3)])
        let first = makeRun(try some(book.next()))
        _ = book.started(first)
        let third = try some(book.next())
        #expect(third.id == 3)
        #expect(holds(book.next() == nil))
        #expect(!holds(book.ended(makeRun(third), nil)), "it never ran here")
        #expect(
            !holds(book.ended(first, Ended(job: first.job, outcome: .succeeded))),
            "the second was taken beyond the bound")
        let second = makeRun(try some(book.next()))
        #expect(second.job.id == 2)
        _ = book.started(second)
        #expect(holds(book.ended(second, nil)), "claims have passed its queue over until now")
    }

    /// A tenant's jobs stand in a line of their own, which has no bound: its queue has.
    @Test func `a queue at its bound by the jobs of a tenant is told of when one ends`() throws {
        var book = WorkerState(slots: 10)
        book.setBound(1, line: 20, of: 2)
        book.accept([claimed(1, lane: Lane(queue: 20, priority: 0, line: .normal))])
        #expect(book.room == [2: 0])
        let run = makeRun(try some(book.next()))
        _ = book.started(run)
        #expect(holds(book.ended(run, nil)))
        #expect(book.room == [2: 1])
    }

    @Test func `suspects are counted, and a lone one excludes all others`() throws {
        var book = WorkerState(slots: 100)
        #expect(book.allowance.suspects == 16 && book.allowance.lone)
        book.accept((1...16).map { claimed($0, lane: Lane(queue: 1, priority: 4, line: .suspect)) })
        #expect(book.allowance.suspects == 0 && !book.allowance.lone)
        _ = book.lose([8])
        #expect(book.allowance.suspects == 16 && book.allowance.lone)
        book.accept([claimed(20, number: 20, lane: Lane(queue: 1, priority: 4, line: .lone))])
        #expect(book.allowance.suspects == 0 && !book.allowance.lone)
    }

    @Test func `what has not started is handed back in one flush, without an attempt`() throws {
        var book = WorkerState(slots: 1)
        book.accept([claimed(1), claimed(2), claimed(3)])
        let run = makeRun(try some(book.next()))
        _ = book.started(run)
        book.stopped = true
        book.handBack()
        #expect(holds(book.next() == nil))
        let flush = try some(book.takeFlush())
        #expect(flush.ended.map(\.job.id) == [2, 3] && flush.ended.allSatisfy { $0.outcome == .released })
        _ = book.flushed(flush, live: [8])
        #expect(book.totals.handedBack == 2)
    }

    @Test func `what was claimed for a pace that has not lasted goes back`() throws {
        var book = WorkerState(slots: 2)
        book.accept((1...6).map { claimed($0, number: 8) })
        var runs: [Run] = []
        func start() throws {
            let run = makeRun(try some(book.next()))
            _ = book.started(run)
            runs.append(run)
        }
        func end() { book.ended(runs[0], Ended(job: runs.removeFirst().job, outcome: .succeeded)) }
        try start()
        try start()
        #expect(holds(!book.handBackHoarded()), "they have only come")
        for _ in 1...4 {
            end()
            try start()
        }
        #expect(holds(!book.handBackHoarded()), "all that waited has been taken")
        book.accept((7...9).map { claimed($0, number: 16) })
        #expect(holds(!book.handBackHoarded()))
        end()
        try start()
        #expect(holds(book.handBackHoarded()), "one was taken, and two wait since the last look")
        #expect(holds(book.held == 2 && !book.handBackHoarded()))
        let flush = try some(book.takeFlush())
        #expect(flush.ended.filter { $0.outcome == .released }.map(\.job.id) == [8, 9])
    }

    @Test func `an abandoned run's job goes back, and its late end is not told`() throws {
        var book = WorkerState(slots: 1)
        book.accept([claimed(1)])
        let run = makeRun(try some(book.next()))
        _ = book.started(run)
        #expect(holds(book.abandon().map(\.job.id) == [1]))
        book.ended(run, Ended(job: run.job, outcome: .succeeded))
        let flush = try some(book.takeFlush())
        #expect(flush.ended.map(\.outcome) == [.released])
        _ = book.flushed(flush, live: [8])
        #expect(book.isEmpty && book.totals.abandoned == 1)
    }

    @Test func `tallies count what was recorded, and come back when they could not be sent`() throws {
        var book = WorkerState(slots: 9)
        book.accept((1...6).map { claimed($0) })
        for outcome in Outcome.allCases {
            let run = makeRun(try some(book.next()))
            _ = book.started(run)
            book.ended(run, Ended(job: run.job, outcome: outcome, milliseconds: 10))
        }
        _ = book.flushed(try some(book.takeFlush()), live: [8])
        let key = TallyKey(queue: 1, kind: 1)
        let taken = book.takeTallies()
        var expected = RunTally()
        expected.succeeded = 1
        expected.cancelled = 1
        expected.dead = 1
        expected.failed = 2
        expected.snoozed = 1
        expected.milliseconds = 60
        #expect(taken == [key: expected])
        #expect(holds(book.takeTallies().isEmpty))
        book.putBack(tallies: taken)
        #expect(holds(book.takeTallies() == taken))
    }
}
