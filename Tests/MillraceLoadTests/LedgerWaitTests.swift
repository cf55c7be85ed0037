import CommandKit
import Postgres
import TestSupport
import Testing

@testable import EngineLoad

/// The rules of the ledger's checker for jobs that wait: each is broken once, and only that violation is found.
@Suite struct LedgerWaitTests {
    /// One job that waited in one run and went on in the next.
    private func story(_ wait: LedgerWait, _ said: String...) -> LedgerChecker {
        var checker = LedgerChecker()
        checker.sessions = [1: LedgerSession(worker: "a", started: 0.5)]
        checker.jobs = [LedgerJob(id: 10, kind: LedgerWait.kind, n: wait.n, state: "succeeded", wait: wait)]
        checker.runs = [run(10, 8, 1, 2, 8), run(10, 16, 4, 5, 1)]
        checker.entries = [entry(10, 8, "began", 1.1), entry(10, 16, "began", 4.1)]
        for what in said { checker.entries.append(entry(10, 16, what, 4.5)) }
        checker.entries.append(entry(10, 16, "effect", 4.9))
        return checker
    }

    private func run(
        _ job: Int64, _ number: Int64, _ started: Double, _ finished: Double, _ outcome: Int
    ) -> LedgerRun {
        LedgerRun(
            job: job, token: LedgerToken(session: 1, number: number), started: started, finished: finished,
            outcome: outcome, attempt: 1)
    }

    private func entry(_ job: Int64, _ number: Int64, _ what: String, _ at: Double) -> LedgerEntry {
        LedgerEntry(job: job, token: LedgerToken(session: 1, number: number), what: what, at: at)
    }

    private func rules(_ checker: LedgerChecker) -> Set<String> { Set(checker.check().findings.map(\.rule)) }

    @Test func `a job that slept has no finding, and one that woke early or never has`() {
        #expect(rules(story(LedgerWait(n: 1, sleep: 3), "woke")).isEmpty)
        #expect(story(LedgerWait(n: 1, sleep: 3), "woke").check().again == ["wait": 1])
        #expect(rules(story(LedgerWait(n: 1, sleep: 4), "woke")) == ["a wait that ends by time is not early"])
        #expect(rules(story(LedgerWait(n: 1, sleep: 3))) == ["a job goes on behind its wait"])
        var stuck = story(LedgerWait(n: 1, sleep: 3))
        stuck.jobs[0].state = "unfinished"
        #expect(rules(stuck) == ["nothing committed is lost"])
    }

    @Test func `a signal that two jobs take is found`() {
        var checker = story(LedgerWait(n: 1, key: "k1"), "took 7")
        checker.signals = [LedgerSignal(n: 7, key: "k1", sent: 3)]
        #expect(rules(checker).isEmpty)
        checker.jobs.append(
            LedgerJob(
                id: 11, kind: LedgerWait.kind, n: 2, state: "succeeded", wait: LedgerWait(n: 2, key: "k1")))
        checker.runs.append(run(11, 24, 4, 5, 1))
        checker.entries += [entry(11, 24, "began", 4.1), entry(11, 24, "took 8", 4.2), entry(11, 24, "effect", 4.3)]
        checker.signals.append(LedgerSignal(n: 8, key: "k1", sent: 3))
        #expect(rules(checker).isEmpty)
        checker.entries[checker.entries.count - 2].what = "took 7"
        #expect(rules(checker) == ["a signal is taken once"])
    }

    @Test func `a signal of another key, one that nobody sent, and an id that is new twice are found`() {
        var checker = story(LedgerWait(n: 1, key: "k1"), "took 7")
        #expect(rules(checker) == ["a signal is taken that was sent"])
        checker.signals = [LedgerSignal(n: 7, key: "k2", sent: 3)]
        #expect(rules(checker) == ["a signal is taken for its key"])
        checker.signals = [LedgerSignal(n: 7, key: "k1", sent: 3, wasNewAgain: true)]
        #expect(rules(checker) == ["a signal's id is known"])
    }

    @Test func `a timeout is not early, and does not win against a signal that was there before`() {
        var checker = story(LedgerWait(n: 7, key: "t7", timeout: 3), "timed out")
        #expect(rules(checker).isEmpty)
        checker.signals = [LedgerSignal(n: 7, key: "t7", sent: 2)]
        #expect(rules(checker).isEmpty)
        checker.signals[0].sent = 1
        #expect(rules(checker) == ["a signal that came in time is taken"])
        #expect(
            rules(story(LedgerWait(n: 7, key: "t7", timeout: 4), "timed out"))
                == ["a wait that ends by time is not early"])
        var both = story(LedgerWait(n: 7, key: "t7", timeout: 3), "timed out", "took 7")
        both.signals = [LedgerSignal(n: 7, key: "t7", sent: 2)]
        #expect(rules(both) == ["a wait has one end"])
    }

    @Test func `an answer that nobody gave is found`() {
        #expect(LedgerWait.answer(to: 10))
        #expect(rules(story(LedgerWait(n: 1, asks: true), "yes")).isEmpty)
        #expect(rules(story(LedgerWait(n: 1, asks: true), "no")) == ["an answer reaches who asked"])
    }

    @Test func `a child that is missing, made twice, or not waited for is found`() {
        let wait = LedgerWait(n: 1, children: 1)
        var checker = story(wait, "joined 1")
        #expect(rules(checker) == ["a child is made once"])
        checker.jobs.append(LedgerJob(id: 20, kind: LedgerWork.kind, n: wait.child(0), state: "succeeded"))
        checker.runs.append(run(20, 24, 2, 3, 1))
        checker.entries += [entry(20, 24, "began", 2.1), entry(20, 24, "effect", 2.2)]
        #expect(rules(checker).isEmpty)
        var soon = checker
        soon.runs[2].finished = 4.6
        #expect(rules(soon) == ["children are waited for"])
        checker.jobs.append(LedgerJob(id: 21, kind: LedgerWork.kind, n: wait.child(0), state: "succeeded"))
        checker.runs.append(run(21, 32, 2, 3, 1))
        checker.entries += [entry(21, 32, "began", 2.1), entry(21, 32, "effect", 2.2)]
        #expect(rules(checker) == ["a child is made once"])
    }

    /// A refused order whose three steps were undone, the last one first.
    private var undone: LedgerChecker {
        var checker = LedgerChecker()
        checker.sessions = [1: LedgerSession(worker: "a", started: 0.5)]
        let order = LedgerOrder(n: 1, refused: true)
        checker.jobs = [LedgerJob(id: 10, kind: LedgerOrder.kind, n: 1, state: "dead", order: order)]
        checker.runs = [run(10, 8, 1, 2, 3)]
        checker.entries = [entry(10, 8, "began", 1.1)]
        for step in 1...3 {
            checker.entries += [entry(10, 8, "step s\(step)", 1.2), entry(10, 8, "kept s\(step)", 1.3)]
            let (id, number, at) = (Int64(10 + step), Int64(8 + step * 8), Double(10 - step))
            checker.jobs.append(
                LedgerJob(id: id, kind: LedgerOrder.kind, n: 1, state: "succeeded", order: order, isUndo: true))
            checker.runs.append(run(id, number, at, at + 0.5, 1))
            checker.entries += [entry(id, number, "began", at), entry(id, number, "undid s\(step)", at + 0.1)]
        }
        return checker
    }

    @Test func `a step that stays, is undone in vain or too soon is found`() {
        #expect(rules(undone).isEmpty)
        var checker = undone
        checker.entries.removeAll { $0.what == "undid s2" }
        #expect(rules(checker) == ["a job that has not succeeded is undone"])
        checker = undone
        for place in checker.entries.indices where checker.entries[place].what == "undid s1" {
            checker.entries[place].at = 7
        }
        #expect(rules(checker) == ["the last step is undone first"])
        checker = undone
        checker.entries.removeAll { $0.what == "step s3" || $0.what == "kept s3" }
        #expect(rules(checker) == ["only what was done is undone"])
        checker = undone
        checker.jobs[0].state = "succeeded"
        checker.runs[0].outcome = 1
        checker.entries.append(entry(10, 8, "effect", 1.4))
        #expect(rules(checker) == ["a job that has succeeded is not undone"])
    }

    @Test func `each break finds what it takes out of the database`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            for broken in LedgerBreak.allCases { try await LedgerSabotage.apply(broken, on: connection) }
            await connection.close()
        }
    }
}
