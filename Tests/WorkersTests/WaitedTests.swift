import Foundation
import MillraceQueues
import Testing

@testable import Workers

/// How long jobs waited, for metrics.
@Suite struct WaitedTests {
    private func job(id: Int64 = 7, seq: Int64 = 7, attempt: Int16 = 0, inLine: TimeInterval = 2) -> Claimed {
        let claimed = Date(timeIntervalSince1970: 1000)
        return Claimed(
            seq: seq, id: id, number: 8, kind: 1, lane: Lane(queue: 1, priority: 4, line: .normal), attempt: attempt,
            enqueuedAt: claimed - inLine, claimedAt: claimed, receivedAt: .now - .seconds(1))
    }

    @Test func `a job has waited in line, and in the worker until its run began`() throws {
        let waited = try #require(makeRun(job()).waited)
        #expect(waited >= 3000)
        // A clock of the database that was set back makes no time negative.
        #expect(try #require(makeRun(job(inLine: -60)).waited) >= 1000)
    }

    @Test func `a wait that was wanted is none`() {
        #expect(makeRun(job(attempt: 1)).waited == nil, "another attempt")
        #expect(makeRun(job(seq: 9)).waited == nil, "it was scheduled, or put back")
    }

    @Test func `waits are counted when the ends are recorded`() throws {
        var book = WorkerState(slots: 2)
        book.accept([claimed(1), claimed(2)])
        for waited: Int32? in [40, nil] {
            let run = makeRun(try some(book.next()))
            _ = book.started(run)
            var end = Ended(job: run.job, outcome: .succeeded, milliseconds: 3)
            end.waited = waited
            book.ended(run, end)
        }
        _ = book.flushed(try some(book.takeFlush()), live: [8])
        let counts = try #require(book.meter.counts[TallyKey(queue: 1, kind: 1)])
        #expect(counts.waits.reduce(0, +) == 1 && counts.waitMilliseconds == 40)
        #expect(counts.buckets.reduce(0, +) == 2)
    }
}
