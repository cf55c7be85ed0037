import Postgres
import TestSupport
import Testing

/// Operations on jobs that wait in the middle of their work, and their undoing.
@Suite struct OperationWaitTests {
    enum What: String, CaseIterable {
        case time, signal, approval, jobs

        var options: String {
            switch self {
            case .time: #"{"seconds": 7200}"#
            case .signal: #"{"name": "paid", "key": "7"}"#
            case .approval: #"{"request": null, "notify": ["ada"], "remind_seconds": 86400}"#
            case .jobs: #"{"jobs": [{"kind": "child"}, {"kind": "child"}]}"#
            }
        }
    }

    /// A job of a pinned build that has two steps on record, one of them of a wait, and waits at a third.
    private static func waiting(for what: What, _ connection: Connection) async throws -> Int {
        try await connection.run("select millrace.build_seen('b1', array[millrace.kind_id('test')])")
        let id = try await connection.claimedJob("'test', unique_key => 'k'")
        try await connection.run(
            """
            update millrace.session set pin = 'b1';
            select millrace.step('1-9-\(id)', 'first', 'null'), millrace.changed('1-9-\(id)', 'new way');
            select millrace.wait('1-9-\(id)', 'short', 'time', '{"seconds": 0}');
            select millrace.state_put('1-9-\(id)', '{"at": 1}'), millrace.publish('1-9-\(id)', '1')
            """)
        #expect(try await connection.value("millrace.wait('1-9-\(id)', 'long', '\(what)', '\(what.options)')") == nil)
        try await connection.settleFlows()
        return id
    }

    private static let actions = [
        ("cancel", "{}"), ("delete", "{}"), ("retry", "{}"), ("retry_fresh", "{}"), ("priority", #"{"priority": 1}"#),
        ("reschedule", #"{"run_at": "2090-01-01T00:00:00Z"}"#), ("reschedule", #"{"run_at": "2020-01-01T00:00:00Z"}"#),
    ]

    @Test(arguments: actions, What.allCases)
    func `what is undone waits as before, with all that it had on record`(action: (String, String), what: What)
        async throws
    {
        try await withConnection { connection in
            let id = try await Self.waiting(for: what, connection)
            let before = try await connection.snapshot()
            let operation = try await connection.start(action.0, "{\"ids\": [\(id)]}", action.1)
            try await connection.stepOperations()
            let isWithoutTime = action.0 == "reschedule" && (what == .signal || what == .approval)
            let isBlocked = what == .jobs && action.0.hasPrefix("retry")
            if isWithoutTime {
                #expect(try await connection.counts(of: operation) == "0 0 1 0 0")
            } else if isBlocked {
                #expect(try await connection.counts(of: operation) == "0 1 0 0 0")
            } else {
                #expect(try await connection.counts(of: operation) == "1 0 0 0 0")
                #expect(try await connection.snapshot() != before)
            }
            try await connection.settleFlows()
            try await connection.undo(operation)
            try await connection.settleFlows()
            let after = try await connection.snapshot()
            for (table, rows) in before { #expect(after[table] == rows, "\(table)") }
        }
    }

    @Test(arguments: ["retry", "retry_fresh"])
    func `a cancelled parent whose retry is undone is cancelled as before`(action: String) async throws {
        try await withConnection { connection in
            let id = try await Self.waiting(for: .jobs, connection)
            #expect(try await connection.bool("select millrace.cancel(\(id))"))
            try await connection.settleFlows()
            let before = try await connection.snapshot()
            let operation = try await connection.start(action, "{\"ids\": [\(id)]}")
            try await connection.stepOperations()
            try await connection.settleFlows()
            #expect(try await connection.state(id) == (action == "retry" ? "blocked" : "ready"))
            try await connection.undo(operation)
            try await connection.settleFlows()
            let after = try await connection.snapshot()
            for (table, rows) in before { #expect(after[table] == rows, "\(table)") }
        }
    }

    @Test(arguments: ["cancel", "delete", "retry", "retry_fresh"], [What.signal, .approval])
    func `what comes between an action and its undoing is told`(action: String, what: What) async throws {
        try await withConnection { connection in
            let id = try await Self.waiting(for: what, connection)
            let operation = try await connection.start(action, "{\"ids\": [\(id)]}")
            try await connection.stepOperations()
            var isAnswered = true
            if what == .signal {
                try await connection.run("select millrace.signal('paid', '7', '{\"cents\": 5}')")
            } else {
                // A question that was deleted cannot be answered.
                isAnswered = try await connection.bool(
                    "select count(millrace.approval_answer(id, true)) = 1 from millrace.approval")
            }
            try await connection.run("select millrace.signals_tell()")
            #expect(try await connection.int("select count(*) from millrace.signal where state = 0") == 0)
            try await connection.undo(operation)
            #expect(try await connection.counts(of: operation) == "1 0 0 1 0")
            try await connection.run("select millrace.signals_tell()")
            #expect(try await connection.state(id) == (isAnswered ? "ready" : "scheduled"))
            let steps = try await connection.column("select name from millrace.steps(\(id))")
            #expect(steps.contains("long") == isAnswered)
            #expect(
                try await connection.int("select count(*) from millrace.signal where state = 2")
                    == (isAnswered ? 1 : 0))
            #expect(try await connection.int("select count(*) from millrace.wait where look_at is not null") == 0)
        }
    }

    @Test func `a question that comes back is answered`() async throws {
        try await withConnection { connection in
            let id = try await Self.waiting(for: .approval, connection)
            let operation = try await connection.start("delete", "{\"ids\": [\(id)]}")
            try await connection.stepOperations()
            #expect(try await connection.int("select count(*) from millrace.approval") == 0)
            try await connection.undo(operation)
            #expect(
                try await connection.bool(
                    "select count(millrace.approval_answer(a.id, true)) = 1 from millrace.approval_list() a"))
            try await connection.run("select millrace.signals_tell()")
            #expect(try await connection.state(id) == "ready")
        }
    }

    @Test func `a sleeping job is moved to another time, and one that waits for a signal is not`() async throws {
        try await withConnection(.movableClock) { connection in
            let id = try await Self.waiting(for: .time, connection)
            #expect(
                try await connection.bool("select millrace.reschedule(\(id), millrace.now() + interval '30 minutes')"))
            #expect(try await connection.value("select state from millrace.job(\(id))") == "scheduled")
            #expect(try await connection.value("select millrace.wait_of(\(id)) ->> 'what'") == "time")
            try await connection.run(
                "select millrace.test_clock_advance('31 minutes'); select millrace.promote(null, 10)")
            #expect(try await connection.claim(number: 48) == [id])
            // It has slept until the new time.
            let rest = try await connection.value(
                "millrace.wait('1-49-\(id)', 'long', 'time', '{\"seconds\": 7200}')")
            #expect(rest == "null")

            let other = try await connection.enqueue()
            #expect(try await connection.claim(number: 64) == [other])
            #expect(
                try await connection.value("millrace.wait('1-65-\(other)', 'pay', 'signal', '{\"name\": \"paid\"}')")
                    == nil)
            let refused = try await connection.refusal(of: "select millrace.reschedule(\(other), now())")
            #expect(refused?.sqlState == "55000" && refused?.message.contains("the signal 'paid'") == true)
        }
    }
}
