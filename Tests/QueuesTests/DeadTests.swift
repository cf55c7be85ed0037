import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// Which dead jobs a filter leaves.
@Suite struct DeadTests {
    /// Dead jobs, a minute apart; each a kind, a queue, a tag and an error.
    private static func fill(
        _ connection: Connection, _ jobs: [(kind: String, queue: String, tag: String, error: String)]
    )
        async throws -> [Int64]
    {
        var ids: [Int64] = []
        for job in jobs {
            let id = try await connection.enqueue(
                "'\(job.kind)', queue => '\(job.queue)', tags => array['\(job.tag)']")
            try await connection.run(
                """
                delete from millrace.ready;
                insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
                select id, 0, id, millrace.now(), millrace.now(), kind, queue, 1, 3, 2, 0, '\(job.error)' from millrace.job where id = \(id);
                select millrace.test_clock_advance('1 min')
                """)
            ids.append(Int64(id))
        }
        return ids
    }

    @Test func `every part of the filter counts, and all of them together`() async throws {
        try await withConnection(.movableClock) { connection in
            let ids = try await Self.fill(
                connection,
                [
                    ("mail", "out", "red", "attempt 2 of 2: Timed Out after 31 s"),
                    ("mail", "in", "red", "timed out after 30 s\nin line 7"), ("sms", "out", "blue", "100% refused"),
                ])
            func found(_ filter: DeadFilter) async throws -> [Int64] {
                try await Queue.deadIDs(filter, after: nil, on: connection).reversed()
            }
            #expect(try await found(DeadFilter()) == ids)
            #expect(try await found(DeadFilter(JobFilter(queue: "out"))) == [ids[0], ids[2]])
            #expect(try await found(DeadFilter(JobFilter(kind: "mail"))) == [ids[0], ids[1]])
            #expect(try await found(DeadFilter(JobFilter(tag: "blue"))) == [ids[2]])
            #expect(try await found(DeadFilter(error: "timed out")) == [ids[0], ids[1]])
            #expect(try await found(DeadFilter(error: "100%")) == [ids[2]], "a text, and no pattern")
            #expect(try await found(DeadFilter(since: .ago(.seconds(150)))) == [ids[1], ids[2]])
            #expect(try await found(DeadFilter(until: .ago(.seconds(150)))) == [ids[0]])
            #expect(
                try await found(DeadFilter(since: .ago(.seconds(150)), until: .ago(.seconds(90)))) == [ids[1]])
            #expect(try await found(DeadFilter(since: .at(Date(timeIntervalSince1970: 0)))) == ids)
            #expect(try await found(DeadFilter(JobFilter(queue: "in", kind: "mail"), error: "OUT")) == [ids[1]])
            for none in [JobFilter(queue: "nowhere"), JobFilter(kind: "nothing"), JobFilter(tag: "none")] {
                #expect(try await found(DeadFilter(none)).isEmpty)
            }
            #expect(try await Queue.deadIDs(DeadFilter(), after: ids[2], limit: 1, on: connection) == [ids[1]])
            #expect(try await connection.refusal(of: "select millrace.dead_ids(page => 501)")?.sqlState == "22023")
        }
    }

    @Test func `causes are counted by kind and error, numbers apart, and those without arguments told`() async throws {
        try await withConnection(.movableClock) { connection in
            let ids = try await Self.fill(
                connection,
                [
                    ("mail", "q", "t", "attempt 2 of 2: timed out after 31 s"),
                    ("mail", "q", "t", "attempt 20 of 20: timed out after 7 s\nmore"),
                    ("sms", "q", "t", "timed out after 9 s"),
                ])
            try await connection.run("delete from millrace.job where id = \(ids[1])")
            #expect(
                try await Queue.deadSummary(DeadFilter(), cap: nil, on: connection) == [
                    DeadCause(kind: "mail", error: "timed out after # s", jobs: 2, dropped: 1),
                    DeadCause(kind: "sms", error: "timed out after # s", jobs: 1, dropped: 0),
                ])
            #expect(
                try await Queue.deadSummary(DeadFilter(error: "31"), cap: nil, on: connection).map(\.jobs) == [1])
            #expect(
                try await Queue.deadSummary(DeadFilter(), cap: 2, on: connection).reduce(0) { $0 + $1.jobs } == 2)
            #expect(
                try await Queue.deadJobs(DeadFilter(), after: nil, limit: 10, on: connection).map(\.id) == [
                    ids[2], ids[0],
                ])
        }
    }
}
