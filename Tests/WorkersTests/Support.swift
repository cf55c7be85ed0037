import FoundationEssentials
import MillraceJobs
import MillraceQueues
import Testing

@testable import Workers

func claimed(
    _ id: Int64, number: Int64 = 8, lane: Lane = Lane(queue: 1, priority: 4, line: .normal), attempt: Int16 = 0
) -> Claimed {
    Claimed(seq: id, id: id, number: number, kind: 1, lane: lane, attempt: attempt)
}

/// What a claim says of jobs that it does not bring.
func taken(_ jobs: [Claimed]) -> [UnreadLease] {
    Dictionary(grouping: jobs) { "\($0.number) \($0.lane)" }.values.map { jobs in
        UnreadLease(number: jobs[0].number, lane: jobs[0].lane, ids: jobs.map(\.id), seqs: jobs.map(\.seq))
    }
}

func makeRun(_ job: Claimed) -> Run {
    Run(
        job: job,
        context: Context(
            id: job.id, kind: "test", queue: "test", attempt: Int(job.attempt) + 1, maxAttempts: 20, crashes: 0,
            enqueuedAt: Date(timeIntervalSince1970: 0), claimedAt: Date(timeIntervalSince1970: 0), session: 1,
            number: 8,
            tenant: nil, tags: [], metadata: nil))
}

/// `#expect` and `#require` take no call that changes a value; these let it happen before.
func holds(_ condition: Bool) -> Bool { condition }

func some<Value>(_ value: Value?) throws -> Value {
    try #require(value)
}

extension [Claimed] {
    var places: [QueuePosition] { map { QueuePosition(lane: $0.lane, seq: $0.seq) } }
}
