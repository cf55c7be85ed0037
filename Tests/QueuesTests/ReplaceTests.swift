import Postgres
import TestSupport
import Testing

/// `on_conflict => 'replace'`.
@Suite struct ReplaceTests {
    @Test func `a waiting holder takes what is new, keeps its id, and moves in time`() async throws {
        try await withConnection { connection in
            let id = try await connection.put("1")
            #expect(try await connection.put("2", "priority => 2, max_attempts => 3, tags => '{x}'") == id)
            #expect(
                try await connection.records(
                    "select state, priority, args, max_attempts, tags from millrace.job(\(id))")
                    == ["(ready,2,2,3,{x})"])
            #expect(try await connection.put("3", "run_at => '2100-01-01', metadata => '{\"m\": 1}'") == id)
            #expect(
                try await connection.records(
                    "select state, priority, args, max_attempts, tags, metadata, run_at = '2100-01-01' from millrace.job(\(id))"
                )
                    == [#"(scheduled,4,3,,{},"{""m"": 1}",t)"#])
            #expect(try await connection.put("4", "run_at => '2101-01-01'") == id)
            #expect(try await connection.state(id) == "scheduled")
            #expect(try await connection.put("5", "queue => 'other', options => '{\"timeout\": 3}'") == id)
            #expect(
                try await connection.records("select state, queue, args, run_at <= now() from millrace.job(\(id))")
                    == ["(ready,other,5,t)"])
            #expect(try await connection.int("select count(*) from millrace.job") == 1)
            #expect(try await connection.keys() == ["\(id)"])
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `while the holder runs, one successor follows it and takes what is new`() async throws {
        try await withConnection { connection in
            let id = try await connection.running("1")
            let next = try await connection.put("2")
            #expect(next != id)
            #expect(try await connection.put("3", "priority => 1") == next)
            #expect(try await connection.keys() == ["\(id) then \(next)"])
            #expect(try await connection.int("select count(*) from millrace.job") == 2)
            #expect(
                try await connection.records("select state, args, priority, waits_for from millrace.job(\(next))")
                    == ["(blocked,3,1,{\(id)})"])
            #expect(
                try await connection.bool(
                    "select (select to_jsonb(v) from millrace.jobs v where id = \(next)) = (select to_jsonb(j) from millrace.job(\(next)) j)"
                ))
            #expect(try await connection.column("select id from millrace.job_list('blocked')") == ["\(next)"])
            #expect(try await connection.int("select millrace.job_count('blocked')") == 1)
            // Nothing else may run or start it.
            #expect(try await connection.claim(number: 16).isEmpty)
            #expect(try await connection.bool("select not millrace.retry(\(next))"))
            #expect(try await connection.put("4", conflict: "skip") == id)
            let error = try await connection.refusal(
                of: "select millrace.enqueue('test', unique_key => 'k', on_conflict => 'error')")
            #expect(error?.sqlState == "23505" && error?.message.contains("job \(id)") == true)
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `a successor's time is its own`() async throws {
        try await withConnection { connection in
            let id = try await connection.running("1")
            let next = try await connection.put("2")
            #expect(try await connection.put("3", "run_at => '2100-01-01'") == next)
            #expect(try await connection.bool("select run_at = '2100-01-01' from millrace.job(\(next))"))
            #expect(try await connection.bool("select millrace.reschedule(\(next), '2101-01-01')"))
            _ = try await connection.finish([.init(id: id, outcome: 1)], complete: [9: 1])
            #expect(
                try await connection.records("select state, run_at = '2101-01-01' from millrace.job(\(next))")
                    == ["(scheduled,t)"])
        }
    }

    @Test func `a job of another kind is not replaced`() async throws {
        try await withConnection { connection in
            let scope = "unique_key => 'k', on_conflict => 'replace', options => '{\"unique_scope\": \"all\"}'"
            let id = try await connection.enqueue("'test', \(scope)")
            let error = try await connection.refusal(of: "select millrace.enqueue('other', \(scope))")
            #expect(error?.sqlState == "23505" && error?.message.contains("another kind") == true)
            #expect(try await connection.state(id) == "ready")
        }
    }

    enum Midway: String, CaseIterable {
        case sleeps, waitsForSignal, waitsForChildren, wasTold, hasUndo
    }

    /// Its steps are those of one piece of work, and what it has done is undone if that fails.
    @Test(arguments: Midway.allCases)
    func `a holder in the middle of its work is followed, as one that runs`(midway: Midway) async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob("'test', '1', unique_key => 'k'")
            try await connection.run("select millrace.step_undoable('1-9-\(id)', 'charge', '1')")
            func wait(_ what: String, _ options: String) async throws {
                #expect(try await connection.value("millrace.wait('1-9-\(id)', 'w', '\(what)', '\(options)')") == nil)
            }
            switch midway {
            case .sleeps: try await wait("time", #"{"seconds": 60}"#)
            case .waitsForSignal: try await wait("signal", #"{"name": "paid"}"#)
            case .waitsForChildren: try await wait("jobs", #"{"jobs": [{"kind": "child"}]}"#)
            case .wasTold:
                try await wait("signal", #"{"name": "paid"}"#)
                try await connection.run("select millrace.signal('paid'); select millrace.signals_tell()")
            case .hasUndo:
                try await connection.finish([.init(id: id, outcome: 4, error: "no", wait: 60)], complete: [9: 1])
            }
            let before = try await connection.value("select state from millrace.job(\(id))")
            let next = try await connection.put("2")
            #expect(next != id)
            #expect(try await connection.put("3") == next)
            #expect(try await connection.value("select args from millrace.job(\(id))") == "1")
            #expect(try await connection.value("select state from millrace.job(\(id))") == before)
            #expect(try await connection.column("select name from millrace.steps(\(id))").contains("charge"))
            #expect(try await connection.int("select count(*) from millrace.undo where job = \(id)") == 1)
            #expect(try await connection.keys() == ["\(id) then \(next)"])
            // Its end gives the successor its place, as ever.
            #expect(try await connection.bool("select millrace.cancel(\(id))"))
            try await connection.settleFlows()
            #expect(try await connection.state(next) == "ready")
            #expect(
                try await connection.int(
                    "select count(*) from millrace.ready r join millrace.undo u on u.undo_job = r.job") == 1)
        }
    }

    @Test func `many at once may hold the same key twice, and the last counts`() async throws {
        try await withConnection { connection in
            let rows = try await connection.records(
                """
                select * from millrace.enqueue_many('[{"kind": "test", "args": 1, "unique_key": "k", "on_conflict": "replace"},
                    {"kind": "test", "args": 2, "unique_key": "k", "on_conflict": "replace"}]')
                """)
            #expect(rows.first == rows.last?.replacing(",f)", with: ",t)"))
            #expect(try await connection.value("select args from millrace.jobs") == "2")
        }
    }
}
