import Postgres
import TestSupport
import Testing

/// An order that has charged: the step says how it is undone.
struct Order {
    let id: Int
    /// The job that gives the money back if the order does not succeed.
    let refund: Int
}

extension Connection {
    /// A job whose run has recorded the step `charge` with its undo, and has ended so; by default it waits for its next attempt.
    func order(_ arguments: String = "'test'", ending outcome: Int = 4) async throws -> Order {
        let id = try await claimedJob(arguments)
        try await run("select millrace.step_undoable('1-9-\(id)', 'charge', '1')")
        try await finish([.init(id: id, outcome: outcome, error: "no", wait: 3600)], complete: [9: 1])
        try await settleFlows()
        return Order(id: id, refund: try await int("select undo_job from millrace.undo where job = \(id)"))
    }

    /// Claims the refund and ends its run so; its step is undone if it succeeds.
    func runRefund(of order: Order, outcome: Int, number: Int = 48) async throws {
        #expect(try await claim(number: number) == [order.refund])
        if outcome == 1 { try await run("select millrace.step_undone('1-\(number + 1)-\(order.refund)')") }
        try await finish(
            [.init(id: order.refund, outcome: outcome, number: number + 1, error: "no", wait: 3600)],
            complete: [number + 1: 1])
        try await settleFlows()
    }
}

/// What a job has done is undone if it does not succeed: once, and whatever anybody does to the job meanwhile.
@Suite struct CompensationTests {
    enum Many: String, CaseIterable {
        case flow, page, operation, operationByIds
    }

    @Test(arguments: Many.allCases)
    func `a cancellation of many jobs cancels the order, and not its refund`(many: Many) async throws {
        try await withConnection { connection in
            let order = try await connection.order()
            switch many {
            case .flow: #expect(try await connection.int("select millrace.flow_cancel(\(order.refund))") == 1)
            case .page:
                #expect(
                    try await connection.records(
                        "select id, outcome from millrace.jobs_do('cancel', array[\(order.refund), \(order.id)])")
                        == ["(\(order.refund),55000)", "(\(order.id),done)"])
            case .operation, .operationByIds:
                let filter =
                    many == .operation ? #"{"queue": "default"}"# : "{\"ids\": [\(order.id), \(order.refund)]}"
                let operation = try await connection.start("cancel", filter)
                try await connection.stepOperations()
                #expect(try await connection.counts(of: operation) == "1 0 1 0 0")
            }
            #expect(try await connection.state(order.id) == "cancelled")
            try await connection.settleFlows()
            #expect(try await connection.state(order.refund) == "ready")
            try await connection.runRefund(of: order, outcome: 1)
            #expect(try await connection.int("select count(*) from millrace.step") == 0)
        }
    }

    @Test func `a refund is cancelled by its own number, once it is due`() async throws {
        try await withConnection { connection in
            let order = try await connection.order()
            func named(_ deed: String = "cancel") async throws -> [String] {
                try await connection.records(
                    "select outcome, reason from millrace.jobs_do('\(deed)', array[\(order.refund)], true)")
            }
            #expect(try await connection.refusal(of: "select millrace.cancel(\(order.refund))")?.sqlState == "55000")
            #expect(try await named().first?.contains("does not end by itself") == true)
            let moved = try await connection.refusal(of: "select millrace.reschedule(\(order.refund), now())")
            #expect(moved?.sqlState == "55000")
            #expect(try await connection.bool("select millrace.cancel(\(order.id))"))
            try await connection.settleFlows()
            #expect(try await named() == ["(done,)"])
            #expect(try await connection.state(order.refund) == "cancelled")
            // The charge stands. The order may go on with it, and is undone if it fails later.
            #expect(try await connection.bool("select millrace.retry(\(order.id))"))
            #expect(try await connection.state(order.refund) == "blocked")
            #expect(try await connection.steps(order.id) == ["(charge,1,1)"])
            #expect(try await connection.bool("select millrace.cancel(\(order.id))"))
            try await connection.settleFlows()
            #expect(try await connection.state(order.refund) == "ready")
        }
    }

    enum Refund: String, CaseIterable {
        case ready, running, waitsForAnotherAttempt, dead
    }

    @Test(arguments: Refund.allCases)
    func `an order that is being undone does not run again`(refund: Refund) async throws {
        try await withConnection { connection in
            let order = try await connection.order(ending: 3)
            switch refund {
            case .ready: break
            case .running: #expect(try await connection.claim(number: 48) == [order.refund])
            case .waitsForAnotherAttempt: try await connection.runRefund(of: order, outcome: 4)
            case .dead: try await connection.runRefund(of: order, outcome: 3)
            }
            let before = try await connection.snapshot()
            for door in ["retry", "retry_fresh", "flow_retry"] {
                let refused = try await connection.refusal(of: "select millrace.\(door)(\(order.id))")
                #expect(refused?.sqlState == "55000", "\(door)")
                #expect(refused?.message.contains("job \(order.refund)") == true, "\(door): \(refused?.message ?? "")")
            }
            for deed in ["retry", "retry_fresh"] {
                #expect(
                    try await connection.records(
                        "select outcome from millrace.jobs_do('\(deed)', array[\(order.id)])") == ["(55000)"])
                let operation = try await connection.start(deed, "{\"ids\": [\(order.id)]}")
                try await connection.stepOperations()
                #expect(try await connection.counts(of: operation) == "0 0 1 0 0", "\(deed)")
            }
            #expect(try await connection.snapshot() == before)
        }
    }

    @Test(arguments: [false, true])
    func `a bulk cancellation is taken back as long as nothing is being undone`(isTold: Bool) async throws {
        try await withConnection { connection in
            let order = try await connection.order()
            let before = try await connection.snapshot()
            let operation = try await connection.start("cancel", #"{"kind": "test"}"#)
            try await connection.stepOperations()
            if isTold { try await connection.settleFlows() }
            try await connection.undo(operation)
            try await connection.settleFlows()
            if isTold {
                #expect(
                    try await connection.past(operation) == [
                        "\(order.id): job \(order.id) is being undone: job \(order.refund) undoes step 'charge'"
                    ])
                #expect(try await connection.state(order.id) == "cancelled")
                #expect(try await connection.state(order.refund) == "ready")
            } else {
                #expect(try await connection.snapshot() == before)
            }
        }
    }

    @Test func `a retry that is taken back leaves the refund as somebody had left it`() async throws {
        try await withConnection { connection in
            let order = try await connection.order(ending: 3)
            #expect(try await connection.bool("select millrace.cancel(\(order.refund))"))
            try await connection.settleFlows()
            let before = try await connection.snapshot()
            let operation = try await connection.start("retry", "{\"ids\": [\(order.id)]}")
            try await connection.stepOperations()
            #expect(try await connection.state(order.id) == "ready")
            #expect(try await connection.state(order.refund) == "blocked")
            try await connection.undo(operation)
            try await connection.settleFlows()
            let after = try await connection.snapshot()
            for (table, rows) in before { #expect(after[table] == rows, "\(table)") }
        }
    }

    /// 1. The order is dead; a worker starts its refund, and has not committed. 2. Somebody retries the order, and waits. 3. The worker commits.
    @Test func `a retry that meets the start of the refund is refused`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let user = try await database.connect()
            let watcher = try await database.connect()
            let order = try await worker.order()
            #expect(try await worker.bool("select millrace.cancel(\(order.id))"))
            try await worker.run("begin; select millrace.flows_advance()")
            let process = try await user.process()
            async let refused = user.refusal(of: "select millrace.retry(\(order.id))")
            try await waitUntilBlocked(process, seenBy: watcher)
            try await worker.run("commit")
            #expect(try await refused?.message.contains("is being undone") == true)
            #expect(try await watcher.state(order.id) == "cancelled")
            #expect(try await watcher.state(order.refund) == "ready")
        }
    }

    /// 1. Somebody retries the order, and has not committed. 2. Workers look for undos to start. 3. The retry commits.
    @Test func `a refund does not start beside a retry of its order`() async throws {
        try await withDatabase { database in
            let user = try await database.connect()
            let worker = try await database.connect()
            let order = try await worker.order()
            #expect(try await worker.bool("select millrace.cancel(\(order.id))"))
            try await user.run("begin; select millrace.retry(\(order.id))")
            try await worker.settleFlows()
            try await user.run("commit")
            try await worker.settleFlows()
            #expect(try await worker.state(order.id) == "ready")
            #expect(try await worker.state(order.refund) == "blocked")
        }
    }

    @Test func `what is to be undone is neither deleted nor begun afresh`() async throws {
        try await withConnection { connection in
            let order = try await connection.order()
            let before = try await connection.snapshot()
            for call in [
                "job_delete(\(order.id))", "job_delete(\(order.refund))", "retry_fresh(\(order.id))",
            ] {
                let refused = try await connection.refusal(of: "select millrace.\(call)")
                #expect(refused?.sqlState == "55000" && refused?.message.contains("'charge'") == true, "\(call)")
            }
            for (action, filter) in [
                ("delete", #"{"state": "scheduled"}"#), ("delete", #"{"state": "blocked"}"#),
                ("retry_fresh", #"{"state": "scheduled"}"#),
            ] {
                let operation = try await connection.start(action, filter)
                try await connection.stepOperations()
                #expect(try await connection.counts(of: operation) == "0 0 1 0 0", "\(action) \(filter)")
            }
            #expect(try await connection.snapshot() == before)
            // Ended, it stays until it is undone.
            #expect(try await connection.bool("select millrace.cancel(\(order.id))"))
            try await connection.settleFlows()
            for deed in ["select id, outcome from millrace.jobs_do('delete', array[\(order.id), \(order.refund)])"] {
                #expect(try await connection.records(deed) == ["(\(order.id),55000)", "(\(order.refund),55000)"])
            }
            try await connection.runRefund(of: order, outcome: 1)
            #expect(try await connection.bool("select millrace.job_delete(\(order.id))"))
            #expect(try await connection.bool("select millrace.job_delete(\(order.refund))"))
        }
    }

    /// A deletion of an order that has succeeded forgets the refund with it.
    @Test func `a deletion that is taken back brings no row of a refund that is gone`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob("'test'")
            try await connection.run("select millrace.step_undoable('1-9-\(id)', 'charge', '1')")
            // The order's end is on record, and nobody has told the refund yet.
            #expect(try await connection.bool("select millrace.complete('1-9-\(id)')"))
            let operation = try await connection.start("delete", "{\"ids\": [\(id)]}")
            try await connection.stepOperations()
            #expect(try await connection.int("select count(*) from millrace.job") == 0)
            #expect(try await connection.bool("select millrace.operation_undo(\(operation))"))
            try await connection.stepOperations()
            #expect(try await connection.state(id) == "succeeded")
            for relation in ["millrace.undo", "millrace.edge where succ not in (select id from millrace.job)"] {
                #expect(try await connection.int("select count(*) from \(relation)") == 0, "\(relation)")
            }
            #expect(try await connection.bool("select millrace.job_delete(\(id))"))
        }
    }

    @Test func `a dead refund runs again, as an undo, and not when there is nothing left to undo`() async throws {
        try await withConnection { connection in
            let order = try await connection.order(ending: 3)
            try await connection.runRefund(of: order, outcome: 3)
            #expect(try await connection.bool("select millrace.retry(\(order.refund))"))
            try await connection.runRefund(of: order, outcome: 3, number: 64)
            // The order's record goes, and with it what the refund has to undo.
            #expect(try await connection.bool("select millrace.job_delete(\(order.id))"))
            let refused = try await connection.refusal(of: "select millrace.retry(\(order.refund))")
            #expect(refused?.sqlState == "55000" && refused?.message.contains("nothing left to undo") == true)
            #expect(try await connection.state(order.refund) == "dead")
        }
    }

    /// Two steps: the later one is undone first.
    @Test func `an undo that comes back waits for its turn`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            for step in ["reserve", "charge"] {
                try await connection.run("select millrace.step_undoable('1-9-\(id)', '\(step)', '1')")
            }
            try await connection.finish([.init(id: id, outcome: 3, error: "no")], complete: [9: 1])
            try await connection.settleFlows()
            let undos = try await connection.column("select undo_job from millrace.undo order by undo_job").map {
                Int($0) ?? 0
            }
            #expect(try await connection.state(undos[1]) == "ready")
            #expect(try await connection.bool("select millrace.cancel(\(undos[0]))"))
            #expect(try await connection.bool("select millrace.retry(\(undos[0]))"))
            try await connection.settleFlows()
            #expect(try await connection.state(undos[0]) == "blocked")
            try await connection.runRefund(of: Order(id: id, refund: undos[1]), outcome: 3)
            #expect(try await connection.state(undos[0]) == "ready")
        }
    }

    /// 1. A handler's own transaction records a charge. 2. The worker gives the run up, and its end is recorded. 3. The transaction commits.
    @Test func `a charge that is committed after the end of its run is undone`() async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let handler = try await database.connect()
            _ = try await worker.enqueue()
            let id = try await worker.claimedJob()
            try await handler.run("begin; select millrace.step_undoable('1-9-\(id)', 'charge', '1')")
            try await worker.finish([.init(id: id, outcome: 3, error: "timed out")], partial: [9])
            try await worker.settleFlows()
            try await handler.run("commit")
            try await worker.settleFlows()
            let refund = try await worker.int("select undo_job from millrace.undo")
            #expect(try await worker.state(refund) == "ready")
        }
    }

    enum Deletion: String, CaseIterable {
        case one, page, operation
    }

    /// An order with two steps, one of them undone and one for good not, and one that waits for an answer.
    @Test(arguments: Deletion.allCases)
    func `a deleted job leaves no row`(deletion: Deletion) async throws {
        try await withConnection(.movableClock) { connection in
            let asking = try await connection.claimedJob("'test', unique_key => 'k'")
            let question = #"{"request": 1, "notify": ["ada"]}"#
            #expect(
                try await connection.value("millrace.wait('1-9-\(asking)', 'ask', 'approval', '\(question)')") == nil)
            #expect(try await connection.bool("select millrace.cancel(\(asking))"))
            let id = try await connection.enqueue()
            #expect(try await connection.claim(number: 16) == [id])
            for step in ["reserve", "charge"] {
                try await connection.run("select millrace.step_undoable('1-17-\(id)', '\(step)', '1')")
            }
            try await connection.run(
                "select millrace.publish('1-17-\(id)', '1'); select millrace.changed('1-17-\(id)', 'way')")
            try await connection.finish([.init(id: id, outcome: 3, number: 17, error: "no")], complete: [17: 1])
            try await connection.settleFlows()
            let undos = try await connection.column("select undo_job from millrace.undo order by 1 desc").map {
                Int($0) ?? 0
            }
            try await connection.runRefund(of: Order(id: id, refund: undos[0]), outcome: 3, number: 32)
            try await connection.runRefund(of: Order(id: id, refund: undos[1]), outcome: 1, number: 40)
            let ids = ([asking, id] + undos).map(String.init).joined(separator: ",")
            // A living lease counts the runs that it has seen end.
            try await connection.run("select millrace.leases_return(1, array(select number from millrace.lease))")
            switch deletion {
            case .one:
                for id in [asking, id] + undos {
                    #expect(try await connection.bool("select millrace.job_delete(\(id))"))
                }
            case .page:
                #expect(
                    try await connection.int(
                        "select count(*) from millrace.jobs_do('delete', array[\(ids)]) where outcome = 'done'") == 4)
            case .operation:
                _ = try await connection.start("delete", "{\"ids\": [\(ids)]}")
                try await connection.stepOperations()
                try await connection.run("select millrace.test_clock_advance('2 days')")
                for _ in 0..<3 { try await connection.run("select millrace.operations_expire()") }
            }
            try await connection.settleFlows()
            let columns = try await connection.column(
                """
                select format('%I where %I = any (array[\(ids)])', c.relname, a.attname)
                  from pg_class c join pg_attribute a on a.attrelid = c.oid
                 where c.relnamespace = 'millrace'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
                   and a.atttypid = 'bigint'::regtype and a.attname in ('job', 'undo_job', 'pred', 'succ', 'next', 'origin')
                   and c.relname <> 'schedule_fire'
                """)
            #expect(columns.count > 20)
            for column in columns + ["job where id in (\(ids))", "history where id in (\(ids))"] {
                #expect(try await connection.int("select count(*) from millrace.\(column)") == 0, "\(column)")
            }
        }
    }

    @Test(.enabled(if: Template.hasRooms))
    func `an order whose person is erased is still undone, and nothing of it stays`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob("'test', '{\"name\": \"Ada\"}', tenant => 'person:ada'")
            try await connection.run(
                "select millrace.step('1-9-\(id)', 'name', '\"Ada\"'), millrace.step_undoable('1-9-\(id)', 'charge', '1')"
            )
            try await connection.finish([.init(id: id, outcome: 3, error: "no")], complete: [9: 1])
            try await connection.settleFlows()
            let refund = try await connection.int("select undo_job from millrace.undo")
            try await connection.run("select millrace.person_erase('ada')")
            #expect(try await connection.value("select args from millrace.job where id = \(id)") == "{}")
            #expect(try await connection.steps(id).count == 2)
            try await connection.runRefund(of: Order(id: id, refund: refund), outcome: 1)
            #expect(try await connection.int("select count(*) from millrace.step") == 0)
        }
    }

    @Test func `an order whose retention has passed is still undone`() async throws {
        try await withConnection { connection in
            let order = try await connection.order(ending: 3)
            try await connection.run(
                "delete from millrace.history where id = \(order.id); delete from millrace.job where id = \(order.id)")
            try await connection.run("select millrace.trace_sweep()")
            #expect(try await connection.steps(order.id) == ["(charge,1,1)"])
            try await connection.runRefund(of: order, outcome: 1)
            try await connection.run("select millrace.trace_sweep()")
            #expect(
                try await connection.int(
                    "select (select count(*) from millrace.step) + (select count(*) from millrace.undo)") == 0)
        }
    }
}
