import MillraceJobs
import MillraceQueues
import Testing

@testable import Workers

@Suite struct OutcomeMapperTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var said: OutcomeMapper.Said
        var reason: CancelReason?
        var attempt: Int16 = 0
        /// nil: there is nothing to tell.
        var outcome: Outcome?
        var error: String?
        var wait: Duration?

        var testDescription: String { "\(said), \(reason.map(\.rawValue) ?? "not cancelled"), attempt \(attempt)" }
    }

    static let mapper = OutcomeMapper(
        retries: RetryPolicy(attempts: 3, base: .seconds(1), cap: .seconds(100)), maxAttempts: 3)

    static let failed = OutcomeMapper.Said.threw("broken", .usual)

    static let table: [Case] = [
        Case(said: .verdict(.done), outcome: .succeeded),
        Case(said: .verdict(.done), reason: .requested, outcome: .succeeded),
        Case(said: .verdict(.done), reason: .timeout, outcome: .succeeded),
        Case(said: .verdict(.done), reason: .stopping, outcome: .succeeded),
        Case(said: .verdict(.done), reason: .cutOff, outcome: .succeeded),
        Case(said: .verdict(.done), reason: .leaseLost, outcome: nil),
        Case(said: .verdict(.discard("no such user")), outcome: .dead, error: "no such user"),
        Case(said: .verdict(.discard("")), outcome: .dead, error: "discarded without a reason"),
        Case(said: .verdict(.discard("why")), reason: .leaseLost, outcome: nil),
        Case(said: .verdict(.snooze(for: .seconds(7))), attempt: 2, outcome: .snoozed, wait: .seconds(7)),
        Case(said: .verdict(.snooze(for: .seconds(-7))), outcome: .snoozed, wait: .zero),
        Case(said: .verdict(.snooze(for: .seconds(7))), reason: .requested, outcome: .cancelled),
        Case(said: .verdict(.retry(reason: "later")), outcome: .retried, error: "later", wait: .seconds(1)),
        Case(said: .verdict(.retry(reason: "later")), attempt: 1, outcome: .retried, error: "later", wait: .seconds(2)),
        Case(
            said: .verdict(.retry(after: .seconds(9), reason: "later")), outcome: .retried, error: "later",
            wait: .seconds(9)),
        Case(said: .verdict(.retry(reason: "later")), attempt: 2, outcome: .dead, error: "attempt 3 of 3: later"),
        Case(said: .verdict(.retry(reason: "later")), reason: .requested, outcome: .cancelled),
        Case(said: failed, outcome: .retried, error: "broken", wait: .seconds(1)),
        Case(said: failed, attempt: 2, outcome: .dead, error: "attempt 3 of 3: broken"),
        Case(said: failed, attempt: 9, outcome: .dead, error: "attempt 10 of 3: broken"),
        Case(said: failed, reason: .requested, outcome: .cancelled),
        Case(said: failed, reason: .requested, attempt: 2, outcome: .cancelled),
        Case(said: failed, reason: .timeout, outcome: .retried, error: "timed out: broken", wait: .seconds(1)),
        Case(said: failed, reason: .timeout, attempt: 2, outcome: .dead, error: "attempt 3 of 3: timed out: broken"),
        Case(said: failed, reason: .stopping, attempt: 2, outcome: .released),
        Case(said: failed, reason: .cutOff, attempt: 2, outcome: .released),
        Case(said: failed, reason: .leaseLost, outcome: nil),
        Case(said: .threw("never", .never), outcome: .dead, error: "never"),
        Case(said: .threw("never", .never), reason: .requested, outcome: .cancelled),
        Case(said: .threw("never", .never), reason: .stopping, outcome: .released),
        Case(said: .threw("wait", .after(.seconds(30))), outcome: .retried, error: "wait", wait: .seconds(30)),
        Case(said: .threw("wait", .after(.seconds(-3))), outcome: .retried, error: "wait", wait: .zero),
        Case(said: .threw("wait", .after(.seconds(30))), attempt: 2, outcome: .dead, error: "attempt 3 of 3: wait"),
    ]

    @Test(arguments: table)
    func `a run ends as the table says`(expected: Case) {
        let job = claimed(1, attempt: expected.attempt)
        let end = Self.mapper.end(
            job, said: expected.said, cancelled: expected.reason, milliseconds: 12, jitter: 1)
        #expect(end?.outcome == expected.outcome)
        #expect(end?.error == expected.error)
        #expect(end?.wait == expected.wait)
        #expect(end.map { $0.milliseconds == 12 && $0.job.id == 1 } ?? true)
    }

    @Test func `a run of a kind with one attempt dies with its reason alone`() {
        let mapper = OutcomeMapper(retries: .never, maxAttempts: 1)
        let end = mapper.end(claimed(1), said: Self.failed, cancelled: nil, milliseconds: 0, jitter: 1)
        #expect(end?.outcome == .dead && end?.error == "broken")
    }

    /// A flush that the database refuses for one absurd pause would hold up the ends beside it.
    @Test(arguments: [Duration.seconds(Int64.max), .days(1_000_000)])
    func `no pause is longer than the database can count`(pause: Duration) {
        for said in [
            OutcomeMapper.Said.verdict(.snooze(for: pause)), .verdict(.retry(after: pause)), .threw("x", .after(pause)),
        ] {
            let end = Self.mapper.end(claimed(1), said: said, cancelled: nil, milliseconds: 0, jitter: 1)
            #expect(end?.wait == OutcomeMapper.longestWait)
        }
    }

    @Test func `what is kept of an error is bounded, and Postgres can store it`() {
        #expect(OutcomeMapper.bounded("short") == "short")
        #expect(OutcomeMapper.bounded("nul\0nul") == "nul␀nul")
        let long = OutcomeMapper.bounded(String(repeating: "x", count: 10_000))
        #expect(long.count == 4001 && long.hasSuffix("…"))
        let flags = OutcomeMapper.bounded(String(repeating: "🇨🇭", count: 10_000))
        #expect(flags.count == 4001)
    }
}
