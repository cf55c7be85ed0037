import MillraceQueues
import Testing

@testable import Workers

private func unread(_ id: Int64, number: Int64 = 8, queue: Int32 = 1) -> Claimed {
    Claimed(
        seq: id, id: id, number: number, kind: 1, lane: Lane(queue: queue, priority: 4, line: .normal), isUnread: true)
}

@Suite struct UnreadJobsTests {
    @Test func `lines take turns to be read, however much stands in one`() {
        var all = UnreadJobs()
        let none = all.sort(out: (1...200).map { unread($0) } + [unread(201, queue: 2), unread(202, queue: 3)])
        #expect(none?.isEmpty == true && all.count == 202)
        #expect(Set(all.next(4).map(\.id)) == [1, 201, 202, 2])
        #expect(all.next(1000).count == 202)
    }

    @Test func `a line with many gets no more, and room again when some were read`() {
        var all = UnreadJobs()
        _ = all.sort(out: (1...256).map { unread($0) })
        #expect(all.room == [1: 0])
        let first = all.next(10)
        let (taken, opened) = all.take(first)
        #expect(taken.count == 10 && opened == [Lane(queue: 1, priority: 4, line: .normal)] && all.room == [1: 10])
        #expect(all.take(first).jobs.isEmpty)
    }

    @Test func `a line is as any other again when a claim brings none of them`() {
        var all = UnreadJobs()
        _ = all.sort(out: [unread(1)])
        #expect(all.take([unread(1)]).jobs.count == 1 && all.room == [1: 256])
        #expect(all.sort(out: [claimed(2)]) == nil && all.room.isEmpty)
    }

    @Test func `the excess of a claim that did not know goes back, and what is lost is forgotten`() {
        var all = UnreadJobs()
        _ = all.sort(out: (1...300).map { unread($0, number: $0 % 2) })
        #expect(all.removeExcess().map(\.id) == Array(257...300) && all.count == 256)
        #expect(all.remove(leases: [0]).count == 128 && all.count == 128)
        #expect(all.removeAll().count == 128 && all.count == 0)
    }

    @Test func `unread jobs are held, do not keep the next claim from following, and go back when the worker drains`() {
        var book = WorkerState(slots: 10)
        book.accept([claimed(1), unread(2), unread(3), claimed(4)])
        #expect(book.held == 4 && book.narrow == [1: 254])
        #expect(book.next()?.id == 1 && book.next()?.id == 4 && book.next() == nil)
        #expect(book.read([unread(2).holding(Contents(size: 1), nil)]).isEmpty)
        #expect(book.next()?.id == 2)
        #expect(book.refuse([(unread(3), "too large")]).isEmpty)
        let flush = book.takeFlush()
        #expect(
            flush?.ended.map(\.outcome) == [.dead] && flush?.ended.first?.error == "too large" && flush?.partial == [8])
        book.accept([unread(5, number: 16)])
        book.stopped = true
        book.handBack()
        if let flush { _ = book.flushed(flush, live: [8]) }
        #expect(book.takeFlush()?.ended.map(\.outcome) == [.released])
    }

    @Test func `a lost lease takes its unread jobs with it`() {
        var book = WorkerState(slots: 10)
        book.accept([unread(1), unread(2, number: 16)])
        _ = book.lose([8])
        #expect(book.held == 1 && book.nextUnread(most: 9).map(\.id) == [2])
        #expect(book.read([unread(1).holding(Contents(size: 1), nil)]).isEmpty)
        #expect(book.next() == nil)
    }
}

@Suite struct BiteTests {
    @Test func `what was too slow is asked for in halves, and in more again when that goes well`() {
        var bite = BatchSize(100, least: 10)
        bite.failed()
        #expect(bite.size == 50)
        for _ in 0..<7 { bite.worked() }
        #expect(bite.size == 50)
        bite.worked()
        #expect(bite.size == 100)
        for _ in 0..<9 { bite.failed() }
        #expect(bite.size == 10 && bite.isLeast)
        bite = BatchSize(100, least: 0)
        bite.gaveWay()
        #expect(bite.size == 0)
        for _ in 0..<8 { bite.worked() }
        #expect(bite.size == 2)
    }
}

@Suite struct StallsTests {
    @Test func `a stall lasts from the first try in vain until one succeeds`() {
        let stalls = Stalls()
        let start = ContinuousClock.now
        stalls.began(.claiming, at: start)
        stalls.began(.claiming, at: start + .seconds(5))
        stalls.began(.reading, at: start + .seconds(6))
        #expect(stalls.longest(atLeast: .seconds(10), at: start + .seconds(9)) == nil)
        let stall = stalls.longest(atLeast: .seconds(10), at: start + .seconds(12))
        #expect(stall?.activity == .claiming && stall?.lasts == .seconds(12))
        stalls.ended(.claiming)
        #expect(stalls.longest(atLeast: .seconds(10), at: start + .seconds(12)) == nil)
        #expect(stalls.longest(atLeast: .seconds(10), at: start + .seconds(16))?.activity == .reading)
    }
}

@Suite struct ByteBudgetTests {
    @Test func `a share is given back when its job is let go of`() {
        let budget = ByteBudget(100)
        var job: Claimed? = unread(1).holding(Contents(size: 60), budget.take(60))
        #expect(budget.free == 40 && !budget.isUnused && job != nil)
        var more: Claimed? = unread(2).holding(Contents(size: 90), budget.take(90))
        #expect(budget.free == 0 && more != nil)
        (job, more) = (nil, nil)
        #expect(budget.free == 100 && budget.isUnused)
    }
}
