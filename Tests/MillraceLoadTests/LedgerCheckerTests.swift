import CommandKit
import LoadKit
import Testing

@testable import EngineLoad

/// The checker itself is tested first: each rule is broken once, and only that violation is found.
@Suite struct LedgerCheckerTests {
    /// Two workers, and one job that ran well.
    private var fine: LedgerChecker {
        var checker = LedgerChecker()
        checker.sessions = [1: LedgerSession(worker: "a", started: 0.5), 2: LedgerSession(worker: "b", started: 0.5)]
        checker.intents = [
            LedgerIntent(shape: .plain, numbers: 1...1, ids: [10], outcome: .committed, called: 0, answered: 0.1)
        ]
        checker.jobs = [LedgerJob(id: 10, kind: LedgerWork.kind, n: 1, state: "succeeded")]
        checker.runs = [run(10, 1, 8, 1, 2, 1)]
        checker.entries = [entry(10, 1, 8, "began", 1.1), entry(10, 1, 8, "effect", 1.9)]
        return checker
    }

    private func run(
        _ job: Int64, _ session: Int64, _ number: Int64, _ started: Double, _ finished: Double, _ outcome: Int
    ) -> LedgerRun {
        LedgerRun(
            job: job, token: LedgerToken(session: session, number: number), started: started, finished: finished,
            outcome: outcome, attempt: 1)
    }

    private func entry(_ job: Int64, _ session: Int64, _ number: Int64, _ what: String, _ at: Double) -> LedgerEntry {
        LedgerEntry(job: job, token: LedgerToken(session: session, number: number), what: what, at: at)
    }

    private func rules(_ checker: LedgerChecker) -> Set<String> { Set(checker.check().findings.map(\.rule)) }

    @Test func `a story without a fault has no finding`() {
        #expect(fine.check().findings.isEmpty)
        #expect(fine.check().committed == 1)
        #expect(fine.check().again.isEmpty)
    }

    @Test func `a token is read as handlers see it`() {
        #expect(LedgerToken("ff-9-10") == LedgerToken(session: 255, number: 9))
        #expect(LedgerToken("ffffffffffffffff-9-10") == LedgerToken(session: -1, number: 9))
        #expect(LedgerToken("nonsense") == nil)
    }

    @Test func `a job that is gone, or does not end, is lost`() {
        var checker = fine
        checker.jobs = []
        checker.entries = []
        #expect(rules(checker) == ["nothing committed is lost"])
        checker = fine
        checker.jobs[0].state = "unfinished"
        #expect(rules(checker).contains("nothing committed is lost"))
    }

    @Test func `what was rolled back must not run`() {
        var checker = fine
        checker.intents[0].outcome = .rolledBack
        #expect(rules(checker) == ["nothing rolled back runs"])
        checker = fine
        checker.entries.append(entry(77, 1, 8, "effect", 2))
        #expect(rules(checker) == ["nothing rolled back runs"])
    }

    @Test func `an end without its effect is found`() {
        var checker = fine
        checker.entries.removeLast()
        #expect(rules(checker) == ["an accepted end had its effect"])
    }

    @Test func `a second end, and two leases at once, are found`() {
        var checker = fine
        checker.runs.append(run(10, 2, 16, 1.5, 3, 1))
        checker.entries += [entry(10, 2, 16, "began", 1.6), entry(10, 2, 16, "effect", 2.5)]
        #expect(rules(checker).isSuperset(of: ["a job ends once", "an accepted end held the live token"]))
    }

    @Test func `a lost lease needs a fault that struck its worker`() {
        var checker = fine
        checker.runs = [run(10, 1, 8, 1, 2, 7), run(10, 2, 16, 3, 4, 1)]
        checker.entries = [
            entry(10, 1, 8, "began", 1.1), entry(10, 2, 16, "began", 3.1), entry(10, 2, 16, "effect", 3.5),
        ]
        #expect(rules(checker) == ["each further run is explained"])
        checker.faults = [LedgerFault(what: "kill", from: 1.2, until: 1.3, aftermath: 1, workers: ["b"])]
        #expect(rules(checker) == ["each further run is explained"])
        checker.faults = [LedgerFault(what: "kill", from: 1.2, until: 1.3, aftermath: 1, workers: ["a"])]
        #expect(rules(checker).isEmpty)
        #expect(checker.check().again == ["crash or lost lease": 1])
        checker.faults = [LedgerFault(what: "stop", from: 1.2, until: 1.3, aftermath: 1, workers: nil)]
        #expect(rules(checker).isEmpty)
        checker.faults[0].aftermath = 0.1
        #expect(rules(checker) == ["each further run is explained"])
        checker.faults = [LedgerFault(what: "kill", from: 0.1, until: 0.2, aftermath: 9, workers: ["a"])]
        #expect(rules(checker) == ["each further run is explained"], "the session was opened after it")
    }

    @Test func `a run that nobody accounts for is found`() {
        var checker = fine
        checker.entries.append(entry(10, 2, 16, "began", 1.2))
        #expect(rules(checker) == ["each run is accounted for"])
        checker.faults = [LedgerFault(what: "stop", from: 1.4, until: 1.5, workers: nil)]
        #expect(rules(checker) == ["each run is accounted for"], "a server that stops in order writes all")
        checker.faults = [LedgerFault(what: "stop", from: 9, until: 10, undoesClaims: true, workers: nil)]
        #expect(rules(checker) == ["each run is accounted for"], "the claim was on the disk")
        checker.faults = [LedgerFault(what: "stop", from: 1.4, until: 1.5, undoesClaims: true, workers: nil)]
        #expect(rules(checker).isEmpty, "a crash undid the claim")
        checker.entries[checker.entries.count - 1].at = 1.6
        #expect(rules(checker) == ["each run is accounted for"], "its worker knew by then")
        checker.entries[checker.entries.count - 1].isLeased = false
        #expect(rules(checker).isEmpty, "it could write that it began only when the database was back")
        checker.entries[checker.entries.count - 1].isLeased = true
        checker.entries[checker.entries.count - 1].at = 1.45
        checker.sessions[2]?.started = 1.42
        #expect(rules(checker) == ["each run is accounted for"], "the session was opened after the crash")
    }

    @Test func `too many holders of a limit key at once are found`() {
        var checker = LedgerChecker()
        checker.limit = 1
        checker.sessions = [1: LedgerSession(worker: "a", started: 0.5)]
        for job in [Int64(10), 11] {
            checker.jobs.append(LedgerJob(id: job, kind: LedgerWork.kind, limitKey: "k", state: "succeeded"))
            checker.runs.append(run(job, 1, 8, 1, 3, 1))
            checker.entries += [entry(job, 1, 8, "began", 1.1 + Double(job - 10)), entry(job, 1, 8, "effect", 2.5)]
        }
        #expect(rules(checker) == ["limits hold at every instant"])
        checker.entries = checker.entries.map { entry in
            var entry = entry
            if entry.job == 10, entry.what == "effect" { entry.at = 2 }
            return entry
        }
        #expect(rules(checker).isEmpty)
    }

    @Test func `a key that two jobs hold is found`() {
        var checker = fine
        checker.jobs[0].key = "u"
        checker.jobs.append(LedgerJob(id: 11, kind: LedgerWork.kind, n: 2, key: "u", state: "succeeded"))
        checker.runs.append(run(11, 1, 16, 3, 4, 1))
        checker.entries += [entry(11, 1, 16, "began", 3.1), entry(11, 1, 16, "effect", 3.5)]
        checker.intents.append(
            LedgerIntent(
                shape: .unique, numbers: 2...2, ids: [11], outcome: .committed, called: 1, answered: 1.5, key: "u"))
        #expect(rules(checker) == ["a unique key has one holder"])
        checker.intents[1].answered = 2.5
        #expect(rules(checker).isEmpty)
    }

    @Test func `a step that is done again after it was kept is found`() {
        var checker = fine
        checker.runs = [run(10, 1, 8, 1, 2, 4), run(10, 2, 16, 3, 4, 1)]
        checker.entries = [
            entry(10, 1, 8, "began", 1.1), entry(10, 1, 8, "step s0", 1.2), entry(10, 1, 8, "kept s0", 1.3),
            entry(10, 2, 16, "began", 3.1), entry(10, 2, 16, "step s0", 3.2), entry(10, 2, 16, "effect", 3.5),
        ]
        #expect(rules(checker) == ["a recorded step is not repeated"])
        checker.entries.removeAll { $0.what == "kept s0" }
        #expect(rules(checker).isEmpty)
    }

    @Test func `a flow that goes on too soon, twice or never is found`() {
        var checker = fine
        checker.jobs.append(LedgerJob(id: 11, kind: LedgerWork.kind, n: 2, state: "succeeded"))
        checker.runs.append(run(11, 1, 16, 1.5, 4, 1))
        checker.entries += [entry(11, 1, 16, "began", 1.6), entry(11, 1, 16, "effect", 3.5)]
        checker.intents.append(
            LedgerIntent(
                shape: .flow, numbers: 2...2, ids: [11], outcome: .committed, called: 1, answered: 1.5, after: [10]))
        #expect(rules(checker) == ["a flow goes on when all have succeeded"])
        checker = fine
        checker.intents[0].shape = .fan
        #expect(rules(checker) == ["a flow goes on exactly once"])
    }

    @Test func `a cancelled job that succeeds, and one that runs too early, are found`() {
        var checker = fine
        checker.intents[0].wasCancelled = true
        #expect(rules(checker) == ["a cancelled job does not succeed"])
        checker = fine
        checker.intents[0].due = 1.5
        #expect(rules(checker) == ["nothing runs before its time"])
    }

    @Test func `a schedule that skips a time or fires twice is found`() {
        var checker = fine
        checker.ticks = [0, 2, 4]
        #expect(rules(checker).isEmpty)
        checker.ticks = [0, 2, 6]
        #expect(rules(checker) == ["a schedule fires once for each time"])
        checker.ticks = [0, 2, 2]
        #expect(rules(checker) == ["a schedule fires once for each time"])
    }

    @Test func `the same seed makes the same choices`() {
        var one = SeededChoices(seed: 7)
        var two = SeededChoices(seed: 7)
        var other = SeededChoices(seed: 8)
        let first = (0..<50).map { _ in one.pick([("a", 1), ("b", 3)]) }
        #expect(first == (0..<50).map { _ in two.pick([("a", 1), ("b", 3)]) })
        #expect(first != (0..<50).map { _ in other.pick([("a", 1), ("b", 3)]) })
    }

    @Test func `a deleted job that goes on running is found, and so is one that is still there`() {
        var checker = fine
        checker.jobs = []
        checker.runs = []
        checker.intents[0].shape = .deleted
        checker.intents[0].ids = []
        let last = checker.entries.map(\.at).max() ?? 0
        checker.intents[0].deleted = [10: last + 1]
        #expect(checker.check().findings.isEmpty)
        checker.intents[0].deleted = [10: last - 0.001]
        #expect(checker.check().findings.map(\.rule) == ["no running job is deleted"])
        checker.intents[0].deleted = [10: last + 1]
        checker.jobs = fine.jobs
        checker.runs = fine.runs
        #expect(checker.check().findings.map(\.rule) == ["a deleted job is gone"])
    }
}
