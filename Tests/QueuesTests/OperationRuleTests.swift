import Postgres
import TestSupport
import Testing

/// How operations are started, paced, stopped and forgotten.
@Suite struct OperationRuleTests {
    @Test func `a filter's names, types and states are checked`() async throws {
        try await withConnection { connection in
            for (action, filter, args) in [
                ("burn", #"{"queue": "q"}"#, "{}"), ("cancel", "{}", "{}"), ("cancel", "[]", "{}"),
                ("cancel", #"{"quene": "q"}"#, "{}"), ("cancel", #"{"queue": 3}"#, "{}"),
                ("cancel", #"{"queue": ""}"#, "{}"), ("cancel", #"{"state": "dead"}"#, "{}"),
                ("retry", #"{"state": "running"}"#, "{}"), ("cancel", #"{"since": "soon"}"#, "{}"),
                ("cancel", #"{"ids": []}"#, "{}"), ("cancel", #"{"ids": [1.5]}"#, "{}"),
                ("cancel", #"{"ids": [1], "queue": "q"}"#, "{}"), ("cancel", #"{"queue": "q"}"#, #"{"x": 1}"#),
                ("priority", #"{"queue": "q"}"#, "{}"), ("priority", #"{"queue": "q"}"#, #"{"priority": 10}"#),
                ("priority", #"{"queue": "q"}"#, #"{"priority": 1.5}"#), ("reschedule", #"{"queue": "q"}"#, "{}"),
                ("reschedule", #"{"queue": "q"}"#, #"{"run_at": "infinity"}"#),
            ] {
                for door in ["operation_start", "operation_preview"] {
                    let error = try await connection.refusal(
                        of: "select millrace.\(door)('\(action)', '\(filter)', '\(args)')")
                    #expect(error?.sqlState == "22023", "\(door) \(action) \(filter) \(args)")
                }
            }
            #expect(try await connection.int("select count(*) from millrace.operation") == 0)
        }
    }

    @Test func `a preview counts, shows some jobs, and changes nothing`() async throws {
        try await withConnection { connection in
            for n in 1...12 { try await connection.enqueue("'test', queue => '\(n % 3 == 0 ? "a" : "b")'") }
            let before = try await connection.snapshot()
            #expect(
                try await connection.records(
                    """
                    select jobs, is_exact, jsonb_array_length(sample), sample -> 0 ->> 'id', sample -> 0 ->> 'state'
                      from millrace.operation_preview('cancel', '{"queue": "a"}', samples => 3)
                    """) == ["(4,t,3,12,ready)"])
            #expect(try await connection.snapshot() == before)
        }
    }

    @Test func `beyond what a look may cost it says at least how many`() async throws {
        try await withConnection { connection in
            try await connection.run(
                "select count(*) from (select millrace.enqueue_bulk('test', array_fill('{}'::text, array[12000]), 'q')) x"
            )
            let preview =
                "select is_exact, jobs, looked from millrace.operation_preview('priority', '{\"queue\": \"q\", \"state\": \"ready\"}', '{\"priority\": 1}')"
            #expect(try await connection.records(preview) == ["(t,12000,12000)"])
            try await connection.run(
                "select count(*) from (select millrace.enqueue_bulk('test', array_fill('{}'::text, array[9000]), 'q')) x"
            )
            #expect(try await connection.records(preview) == ["(f,20000,20000)"])
        }
    }

    @Test func `started twice with one key it is started once, and another under that key is refused`() async throws {
        try await withConnection { connection in
            try await connection.enqueue()
            let start = "select millrace.operation_start('cancel', '{\"kind\": \"test\"}', key => 'mine')"
            #expect(try await connection.int(start) == (try await connection.int(start)))
            #expect(try await connection.int("select count(*) from millrace.audit_list()") == 1)
            #expect(
                try await connection.refusal(of: start.replacing("\"test\"", with: "\"other\""))?.sqlState == "23505")
        }
    }

    @Test func `it keeps its pace, and stands still while it is paused`() async throws {
        try await withConnection(.movableClock) { connection in
            for _ in 1...25 { try await connection.enqueue() }
            let operation = try await connection.int(
                "select millrace.operation_start('cancel', '{\"kind\": \"test\"}', pace => 10)")
            func step() async throws -> String? {
                try await connection.records("select operation, acted, wait > 0.2 from millrace.operation_step()").first
            }
            #expect(try await step() == "(\(operation),10,t)")
            #expect(try await step() == "(,0,t)", "the second is not over")
            try await connection.run("select millrace.test_clock_advance('1 s')")
            #expect(try await step() == "(\(operation),10,t)")
            #expect(try await connection.bool("select millrace.operation_pause(\(operation))"))
            #expect(try await connection.bool("select not millrace.operation_pause(\(operation))"))
            try await connection.run("select millrace.test_clock_advance('1 s')")
            #expect(try await step() == "(,0,)")
            #expect(try await connection.counts(of: operation) == "20 0 0 0 0")
            #expect(try await connection.bool("select millrace.operation_resume(\(operation))"))
            #expect(try await step() == "(\(operation),5,t)")
            #expect(try await connection.refusal(of: "select millrace.operation_pause(999)")?.sqlState == "P0002")
        }
    }

    @Test func `a stopped one stays where it is, and what it has done can be undone`() async throws {
        try await withConnection { connection in
            for _ in 1...10 { try await connection.enqueue() }
            let before = try await connection.snapshot()
            let operation = try await connection.start("cancel", #"{"kind": "test"}"#)
            try await connection.run("select millrace.operation_step(most => 4)")
            #expect(try await connection.bool("select millrace.operation_stop(\(operation))"))
            try await connection.stepOperations()
            #expect(try await connection.counts(of: operation) == "4 0 0 0 0")
            #expect(try await connection.bool("select not millrace.operation_stop(\(operation))"))
            try await connection.undo(operation)
            #expect(try await connection.snapshot() == before)
            #expect(try await connection.bool("select not millrace.operation_undo(\(operation))"))
        }
    }

    @Test func `it can be undone while it runs, but not when ten minutes have passed since its end`() async throws {
        try await withConnection(.movableClock) { connection in
            for _ in 1...10 { try await connection.enqueue() }
            let before = try await connection.snapshot()
            let early = try await connection.start("cancel", #"{"kind": "test"}"#)
            try await connection.run("select millrace.operation_step(most => 4)")
            try await connection.undo(early)
            #expect(try await connection.counts(of: early) == "4 0 0 4 0")
            #expect(try await connection.snapshot() == before)

            let late = try await connection.start("cancel", #"{"kind": "test"}"#)
            try await connection.stepOperations()
            #expect(try await connection.bool("select can_undo from millrace.operation(\(late))"))
            try await connection.run("select millrace.test_clock_advance('10 min')")
            #expect(try await connection.bool("select not can_undo from millrace.operation(\(late))"))
            #expect(
                try await connection.refusal(of: "select millrace.operation_undo(\(late))")?.sqlState == "55000")
        }
    }

    @Test func `what undoing needs is forgotten after ten minutes, the items after a day, and the row stays`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await OperationTests.fill(connection)
            let operation = try await connection.start("delete", #"{"queue": "d"}"#)
            try await connection.stepOperations()
            func left() async throws -> String? {
                try await connection.run("select millrace.operations_expire()")
                return try await connection.value(
                    "select concat_ws(' ', (select count(*) from millrace.operation_kept), (select count(*) from millrace.operation_item), (select count(*) from millrace.operation))"
                )
            }
            #expect(try await left() == "3 3 1")
            try await connection.run("select millrace.test_clock_advance('11 min')")
            #expect(try await left() == "0 3 1")
            try await connection.run("select millrace.test_clock_advance('1 day')")
            #expect(try await left() == "0 0 1")
            #expect(try await connection.counts(of: operation) == "3 0 0 0 0")
        }
    }

    @Test func `one that has been paused for a day is ended, so that nothing is kept for it`() async throws {
        try await withConnection(.movableClock) { connection in
            for _ in 1...3 { try await connection.enqueue() }
            let operation = try await connection.start("delete", #"{"state": "ready"}"#)
            try await connection.run(
                "select millrace.operation_step(most => 2); select millrace.operation_pause(\(operation))")
            func state() async throws -> String? {
                try await connection.run("select millrace.operations_expire()")
                return try await connection.value(
                    "select state || ' ' || (select count(*) from millrace.operation_kept) from millrace.operation(\(operation))"
                )
            }
            #expect(try await state() == "paused 2")
            try await connection.run("select millrace.test_clock_advance('25 hours')")
            #expect(try await state() == "stopped 2")
            try await connection.run("select millrace.test_clock_advance('10 min')")
            #expect(try await state() == "stopped 0")
        }
    }

    @Test func `a job whose row somebody holds is refused after a while, and the others are not held up`() async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            let other = try await database.connect()
            let (held, free) = (try await connection.enqueue(), try await connection.enqueue())
            try await other.run("begin; select from millrace.ready where job = \(held) for update")
            let operation = try await connection.start("cancel", #"{"kind": "test"}"#)
            try await connection.stepOperations()
            #expect(try await connection.state(free) == "cancelled")
            #expect(
                try await connection.column(
                    "select job || ': ' || reason from millrace.operation_items(\(operation), 'refused')")
                    == ["\(held): a transaction that is still open holds the job"])
            try await other.run("rollback")
            await other.close()
            await connection.close()
        }
    }

    @Test(.enabled(if: Template.hasRooms)) func `the mail of a person who is erased is not kept for an undo`()
        async throws
    {
        try await withConnection { connection in
            let id = try await connection.enqueue("'test', '{\"to\": \"Ada@B.example\"}'")
            _ = try await connection.start("delete", "{\"ids\": [\(id)]}")
            try await connection.stepOperations()
            #expect(try await connection.int("select count(*) from millrace.operation_kept") == 1)
            try await connection.run("select millrace.mail_erase('ada@b.example')")
            #expect(try await connection.int("select count(*) from millrace.operation_kept") == 0)
        }
    }
}
