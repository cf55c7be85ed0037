import Postgres
import TestSupport
import Testing

@Suite struct ViewTests {
    @Test func `the view and the look-up agree on every state`() async throws {
        try await withConnection { connection in
            var ids: [String: Int] = [:]
            for state in ["succeeded", "cancelled", "dead", "running"] {
                ids[state] = try await connection.enqueue("'test', '{\"s\": \"\(state)\"}'")
            }
            try await connection.openSession()
            try await connection.claim()
            _ = try await connection.finish(
                [
                    .init(id: ids["succeeded"] ?? 0, outcome: 1), .init(id: ids["cancelled"] ?? 0, outcome: 2),
                    .init(id: ids["dead"] ?? 0, outcome: 3, error: "broken"),
                ], partial: [9])
            ids["ready"] = try await connection.enqueue()
            ids["scheduled"] = try await connection.enqueue("'test', run_at => now() + interval '1 day'")
            #expect(try await connection.int("select count(*) from millrace.jobs") == ids.count)
            for (state, id) in ids {
                #expect(try await connection.state(id) == state)
                #expect(
                    try await connection.bool(
                        "select (select to_jsonb(v) from millrace.jobs v where id = \(id)) = (select to_jsonb(j) from millrace.job(\(id)) j)"
                    ))
                #expect(try await connection.column("select id from millrace.job_list('\(state)')") == ["\(id)"])
            }
            let dead = try await connection.records(
                "select worker, finished_at is not null, errors -> 0 ->> 'error' from millrace.job(\(ids["dead"] ?? 0))"
            )
            #expect(dead == ["(worker-1,t,broken)"])
            #expect(try await connection.records("select * from millrace.job(12345)").isEmpty)
            let depths = try await connection.records("select queue, ready, scheduled, running from millrace.queues")
            #expect(depths == ["(default,1,1,1)"])
        }
    }

    @Test func `a list comes in pages, newest first, filtered`() async throws {
        try await withConnection { connection in
            try await connection.run(
                "select millrace.enqueue('test', queue => 'q' || n % 2, tags => array['t' || n % 5]) from generate_series(1, 25) n"
            )
            var seen: [Int] = []
            while true {
                let after = seen.last.map(String.init) ?? "null"
                let page = try await connection.column(
                    "select id from millrace.job_list('ready', after => \(after), page => 10)"
                ).compactMap { Int($0) }
                if page.isEmpty { break }
                seen += page
            }
            #expect(seen.count == 25 && seen == seen.sorted(by: >) && Set(seen).count == 25)
            #expect(try await connection.int("select count(*) from millrace.job_list('ready', 'q1')") == 13)
            #expect(try await connection.int("select count(*) from millrace.job_list('ready', the_tag => 't3')") == 5)
            #expect(
                try await connection.int("select count(*) from millrace.job_list('ready', the_kind => 'other')") == 0)
            for page in ["0", "501", "null"] {
                #expect(
                    try await connection.refusal(of: "select millrace.job_list('ready', page => \(page))")?.sqlState
                        == "22023")
            }
        }
    }

    @Test func `kinds that no running worker knows are named`() async throws {
        try await withConnection { connection in
            try await connection.run("select millrace.enqueue('unknown') from generate_series(1, 3)")
            try await connection.enqueue()
            #expect(try await connection.records("select * from millrace.orphans()") == ["(unknown,3)", "(test,1)"])
            try await connection.run(
                "select millrace.session_open(1, 'w', 'h', 1, '0', null, array(select id from millrace.kind where name = 'test'), 10, false)"
            )
            #expect(try await connection.records("select * from millrace.orphans()") == ["(unknown,3)"])
        }
    }
}
