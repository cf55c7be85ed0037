import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

@Suite struct LanesTests {
    /// Two kinds, two queues, several priorities; some places are consumed.
    @Test func `the look above bottoms sees what the whole look sees, from there on`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.enqueue(case n % 5 when 0 then 'other' else 'known' end, '{}', queue => 'q' || n % 2, priority => n % 3)
                  from generate_series(1, 300) n;
                delete from millrace.ready where seq < (select min(seq) + 100 from millrace.ready)
                """)
            let kinds = try await connection.column("select id from millrace.kind where name = 'known'").compactMap {
                Int32($0)
            }
            let whole = try await Queue.lanes(on: connection, kinds: kinds, queues: nil)
            #expect(whole.count == 6)
            let lanes = Set(whole.map(\.lane.queue)).flatMap { queue in
                (Int32(0)..<40).map { Lane(queue: queue, code: $0) }
            }
            func spelled(_ found: [(lane: Lane, first: Int64, last: Int64)]) -> [String] {
                found.map { "\($0.lane.queue).\($0.lane.code): \($0.first) to \($0.last)" }.sorted()
            }
            let all = try await Queue.lanes(on: connection, kinds: kinds, above: lanes.map { ($0, 0) })
            #expect(spelled(all) == spelled(whole))
            // Directly below the first place it is still found; at the first place the next one is first.
            let below = try await Queue.lanes(
                on: connection, kinds: kinds, above: whole.map { ($0.lane, $0.first - 1) })
            #expect(spelled(below) == spelled(whole))
            let at = try await Queue.lanes(on: connection, kinds: kinds, above: whole.map { ($0.lane, $0.first) })
            #expect(at.count == 6)
            for (found, before) in zip(at.sorted { $0.first < $1.first }, whole.sorted { $0.first < $1.first }) {
                #expect(found.first > before.first)
            }
            #expect(
                try await Queue.lanes(on: connection, kinds: kinds, above: whole.map { ($0.lane, $0.last) }).isEmpty)
            await connection.close()
        }
    }

    @Test func `pieces between two places see together what the whole look sees`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                "select millrace.enqueue(case n % 5 when 0 then 'other' else 'known' end, '{}', queue => 'q' || n % 2) from generate_series(1, 40) n"
            )
            let kinds = try await connection.column("select id from millrace.kind where name = 'known'").compactMap {
                Int32($0)
            }
            let places = try await connection.column(
                "select r.seq from millrace.ready r join millrace.kind k on k.id = r.kind where k.name = 'known' order by 1"
            ).compactMap { Int64($0) }
            var seen: [Int64] = []
            for place in 0...places.last! {
                seen += try await Queue.lanes(on: connection, kinds: kinds, queues: nil, above: place - 1, upTo: place)
                    .flatMap { $0.first == $0.last ? [$0.first] : [] }
            }
            #expect(seen == places)
            let all = try await Queue.lanes(on: connection, kinds: kinds, queues: nil, above: 0, upTo: places.last!)
            let whole = try await Queue.lanes(on: connection, kinds: kinds, queues: nil)
            #expect(Set(all.map(\.first)) == Set(whole.map(\.first)))
            #expect(Set(all.map(\.last)) == Set(whole.map(\.last)))
            let queue = try #require(all.first?.lane.queue)
            let one = try await Queue.lanes(
                on: connection, kinds: kinds, queues: [queue], above: 0, upTo: places.last!)
            #expect(one.map(\.lane.queue) == [queue])
            await connection.close()
        }
    }

    @Test func `a timer is due between its own time and any before`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run("select millrace.enqueue('known', '{}', run_at => '2100-01-01')")
            let due = try #require(ISO8601DateFormatter().date(from: "2100-01-01T00:00:00Z"))
            for (above, upTo, isDue) in [
                (Date.distantPast, due, true), (due.addingTimeInterval(-0.001), due, true),
                (due, due.addingTimeInterval(9), false),
                (.distantPast, due.addingTimeInterval(-0.001), false),
            ] {
                #expect(try await Queue.isDue(on: connection, above: above, upTo: upTo) == isDue)
            }
            await connection.close()
        }
    }

    /// Dead rows that a snapshot keeps lie below the floor, and are not read.
    @Test func `the look above bottoms reads nothing below them`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let pin = try await database.connect()
            try await pin.run("begin isolation level repeatable read; select count(*) from millrace.ready")
            try await connection.run(
                """
                select millrace.enqueue_bulk('known', array(select '{}' from generate_series(1, 5000)));
                delete from millrace.ready;
                select millrace.enqueue_bulk('known', array(select '{}' from generate_series(1, 3)))
                """)
            let kinds = try await connection.column("select id from millrace.kind where name = 'known'").compactMap {
                Int32($0)
            }
            let lane = try #require(try await Queue.lanes(on: connection, kinds: kinds, queues: nil).first)
            func read(_ look: () async throws -> Int) async throws -> Int {
                let counter = "select pg_stat_get_xact_tuples_returned('millrace.ready_pkey'::regclass)"
                try await connection.run("begin")
                let before = try await connection.int(counter)
                #expect(try await look() == 1)
                let after = try await connection.int(counter)
                try await connection.run("commit")
                return after - before
            }
            let whole = try await read {
                try await Queue.lanes(on: connection, kinds: kinds, queues: nil).count
            }
            let above = try await read {
                try await Queue.lanes(on: connection, kinds: kinds, above: [(lane.lane, lane.first - 1)]).count
            }
            #expect(whole > 5000 && whole < 6000)  // once, not once for the lane and again for its first place
            #expect(above < 20)
            await pin.close()
            await connection.close()
        }
    }
}
