import Foundation
import Millrace
import Postgres
import Synchronization
import TestSupport
import Testing

private struct Order: Job {
    static let kind = "order"
    static let retries = RetryPolicy(attempts: 3, base: .milliseconds(1), cap: .milliseconds(2))
    var id: Int
}

private struct Payment: Codable, Sendable, Equatable {
    var amount: Int
}

private struct Piece: Job {
    static let kind = "piece"
    static let retries = RetryPolicy(attempts: 1)
    var n: Int
}

private struct Broken: Error {}

/// Waiting in the middle of a handler, as another project would use it.
@Suite struct HandlerWaitTests {
    private struct World: Sendable {
        let database: TestDatabase
        let connection: Connection
        let worker: Worker
        let bench: TestBench
        let client: Client

        func value(_ text: String) async throws -> String? { try await connection.value(text) }
        func state(_ id: Int64) async throws -> String? { try await value("select state from millrace.job(\(id))") }
        func runs(_ id: Int64) async throws -> String {
            try await value(
                "select string_agg(outcome || '/' || attempt, ' ' order by finished, number) from millrace.history where id = \(id)"
            ) ?? ""
        }
        func advance(_ interval: String) async throws {
            try await connection.run("select millrace.test_clock_advance('\(interval)')")
        }
    }

    private func with(_ set: (Worker) -> Void, _ body: (World) async throws -> Void) async throws {
        try await withDatabase(.movableClock) { database in
            let location = Database.url(database.url)
            let worker = Worker(database: location, log: .silent)
            set(worker)
            let bench = try TestBench(worker: worker, database: location)
            let client = try Client(database: location)
            let connection = try await database.connect()
            try await body(
                World(database: database, connection: connection, worker: worker, bench: bench, client: client))
            await connection.close()
            await client.close()
            await bench.close()
        }
    }

    @Test func `a run that sleeps ends, and the next one goes on behind it`() async throws {
        let done = Locked(0)
        try await with { worker in
            worker.handle(Order.self) { _, context in
                try await context.step("reserve") { done.add() }
                try await context.sleep("cool-off", for: .seconds(3 * 86_400))
                try context.result(context.attempt)
                return .done
            }
        } _: { world in
            let id = try await world.client.enqueue(Order(id: 7))
            _ = try await world.bench.drain()
            let errors = try await world.value("select errors from millrace.job(\(id))") ?? ""
            #expect(try await world.state(id) == "scheduled", "\(errors)")
            #expect(try await world.runs(id) == "8/1")
            #expect(try await world.value("select millrace.why(\(id)) ->> 'reason'") == "waits_time")
            #expect(try await world.value("select array(select millrace.job_ids('waiting'))::text") == "{\(id)}")
            // Run by hand too early, it waits for the rest.
            try await world.advance("1 day")
            #expect(try await world.connection.bool("select millrace.retry(\(id))"))
            _ = try await world.bench.drain()
            #expect(try await world.runs(id) == "8/1 8/1")
            try await world.advance("47 hours")
            _ = try await world.bench.drain()
            #expect(try await world.runs(id) == "8/1 8/1")
            try await world.advance("2 hours")
            _ = try await world.bench.drain()
            #expect(try await world.runs(id) == "8/1 8/1 1/1")
            #expect(done.value == 1)
            #expect(try await world.client.result(of: id, as: Int.self) == 1)
            #expect(try await world.value("select count(*) from millrace.wait") == "0")
            #expect(try await world.value("select array(select millrace.job_ids('waiting'))::text") == "{}")
        }
    }

    @Test func `a signal reaches one job that waits, before or after it began to wait, and each once`() async throws {
        let got = Locked<[Int: Int?]>([:])
        try await with { worker in
            worker.handle(Order.self) { order, context in
                let payment = try await context.event(
                    "paid", key: "order-\(order.id % 10)", as: Payment.self, timeout: .seconds(86_400))
                got.withLock { $0[order.id] = .some(payment?.amount) }
                return .done
            }
        } _: { world in
            try await world.client.signal("paid", key: "order-1", payload: Payment(amount: 5))
            let first = try await world.client.enqueue(Order(id: 1))
            let second = try await world.client.enqueue(Order(id: 11))
            _ = try await world.bench.drain()
            #expect(got.value.count == 1 && got.value.values.first == 5)
            let waits = got.value[1] == nil ? first : second
            #expect(try await world.state(waits) == "scheduled")
            #expect(try await world.value("select millrace.why(\(waits)) ->> 'reason'") == "waits_signal")
            // The same id is the same signal.
            #expect(try await world.client.signal("paid", key: "order-1", payload: Payment(amount: 6), id: "a"))
            #expect(try await !world.client.signal("paid", key: "order-1", payload: Payment(amount: 6), id: "a"))
            await #expect(throws: QueueError.self) {
                try await world.client.signal("paid", key: "order-1", payload: Payment(amount: 7), id: "a")
            }
            try await world.connection.run("select millrace.signals_tell()")
            _ = try await world.bench.drain()
            #expect(Set(got.value.values.compactMap(\.self)) == [5, 6])
            #expect(try await world.value("select count(*) from millrace.signal where state <> 2") == "0")
            // Nobody comes.
            let third = try await world.client.enqueue(Order(id: 2))
            _ = try await world.bench.drain()
            try await world.advance("25 hours")
            _ = try await world.bench.drain()
            #expect(got.value[2] == .some(nil))
            #expect(try await world.runs(third) == "8/1 1/1")
        }
    }

    @Test func `a signal for all reaches all that wait and all that come, each once`() async throws {
        let got = Locked(0)
        try await with { worker in
            worker.handle(Order.self) { order, context in
                _ = try await context.event("open", as: Bool.self)
                got.add()
                let again = try await context.event("open", as: Bool.self, timeout: .seconds(5), step: "again")
                #expect(again == nil)
                return .done
            }
        } _: { world in
            let early = try await world.client.enqueue(Order(id: 1))
            _ = try await world.bench.drain()
            try await world.client.signal("open", toAll: true)
            try await world.connection.run("select millrace.signals_tell()")
            let late = try await world.client.enqueue(Order(id: 2))
            _ = try await world.bench.drain()
            #expect(got.value == 2)
            try await world.advance("10 s")
            _ = try await world.bench.drain()
            for id in [early, late] { #expect(try await world.state(id) == "succeeded") }
        }
    }

    @Test(.enabled(if: Template.hasRooms)) func `a run asks a person and waits for the answer, which is given once`()
        async throws
    {
        let got = Locked<[Int: Approval?]>([:])
        try await with { worker in
            worker.handle(Order.self) { order, context in
                let answer = try await context.approval(
                    "refund", of: Payment(amount: order.id), timeout: .seconds(86_400), notify: ["ada"],
                    remind: .seconds(3600), escalate: Escalation(after: .seconds(7200), to: ["eve"]))
                got.withLock { $0[order.id] = .some(answer) }
                return .done
            }
        } _: { world in
            let id = try await world.client.enqueue(Order(id: 7))
            let other = try await world.client.enqueue(Order(id: 8))
            _ = try await world.bench.drain()
            let asked = "from millrace.approval_list() where job = \(id)"
            #expect(try await world.value("select request ->> 'amount' \(asked)") == "7")
            let question = try await world.value("select id \(asked)") ?? ""
            #expect(
                try await world.value("select (remind_at - asked_at, escalate_at - asked_at) \(asked)")
                    == "(01:00:00,02:00:00)")
            let told = "select string_agg(distinct person || ' ' || kind, ', ') from millrace.notice"
            #expect(try await world.value(told) == "ada approval.asked")
            try await world.advance("3 hours")
            #expect(try await world.value("select millrace.approvals_remind()") == "2")
            #expect(
                try await world.value(told) == "ada approval.asked, ada approval.reminder, eve approval.escalated")
            let answer = "select millrace.approval_answer('\(question)', true, 'ada', 'known')"
            #expect(try await world.connection.bool(answer))
            #expect(try await !world.connection.bool(answer))
            let refused = try await world.connection.refusal(
                of: "select millrace.approval_answer('\(question)', false)")
            #expect(refused?.sqlState == "55000")
            try await world.connection.run("select millrace.signals_tell()")
            _ = try await world.bench.drain()
            #expect(got.value[7] == Approval(approved: true, by: "ada", comment: "known"))
            let audited =
                "select count(*) from millrace.audit where action = 'approval.answer' and object = '\(question)'"
            #expect(try await world.value(audited) == "1")
            try await world.advance("2 days")
            #expect(try await world.value("select count(*) from millrace.approval_list()") == "0")
            _ = try await world.bench.drain()
            #expect(got.value[8] == .some(nil))
            #expect(try await world.state(other) == "succeeded")
            #expect(try await world.value("select count(*) from millrace.approval_list(only_open => false)") == "2")
        }
    }

    @Test func `a run makes jobs, waits for their ends, and makes them once`() async throws {
        let got = Locked<[[Int?]]>([])
        try await with { worker in
            worker.handle(Order.self) { order, context in
                let one = try await context.child(Piece(n: 7), as: Int.self)
                let ended = try await context.children((1...5).map { Piece(n: $0) }, as: Int.self)
                if context.attempt == 1, got.value.isEmpty {
                    got.withLock { $0.append([one.result] + ended.map(\.result)) }
                    throw Broken()
                }
                got.withLock { $0.append(ended.map { $0.succeeded ? 1 : 0 }) }
                return .done
            }
            worker.handle(Piece.self) { piece, context in
                if piece.n == 3 { throw Broken() }
                try context.result(piece.n * piece.n)
                return .done
            }
        } _: { world in
            let id = try await world.client.enqueue(Order(id: 7))
            // A drain ends when nothing is due, and the job that waits may be about to be told.
            try await eventually("it has ended") {
                while try await world.connection.bool("select more from millrace.flows_advance()") {}
                _ = try await world.bench.drain()
                try await world.advance("1 s")
                return try await world.state(id) == "succeeded"
            }
            #expect(got.value == [[49, 1, 4, nil, 16, 25], [1, 1, 0, 1, 1]])
            let runs = try await world.runs(id)
            #expect(runs == "8/1 8/1 4/1 1/2")
            #expect(
                try await world.value(
                    "select count(*) from millrace.job j join millrace.kind k on k.id = j.kind and k.name = 'piece'")
                    == "6")
        }
    }

    @Test func `a waiter that is cancelled takes no signal, and one that is retried begins at its wait`() async throws {
        try await with { worker in
            worker.handle(Order.self) { order, context in
                let payment = try await context.event("paid", as: Payment.self)
                try context.result(payment?.amount)
                return .done
            }
        } _: { world in
            let gone = try await world.client.enqueue(Order(id: 1))
            _ = try await world.bench.drain()
            #expect(try await world.client.cancel(gone))
            #expect(try await world.state(gone) == "cancelled")
            try await world.client.signal("paid", payload: Payment(amount: 5))
            try await world.connection.run("select millrace.signals_tell()")
            #expect(try await world.value("select state from millrace.signal") == "1")
            let next = try await world.client.enqueue(Order(id: 2))
            _ = try await world.bench.drain()
            #expect(try await world.client.result(of: next, as: Int.self) == 5)
            #expect(try await world.connection.bool("select millrace.retry(\(gone))"))
            _ = try await world.bench.drain()
            #expect(try await world.state(gone) == "scheduled")
            try await world.client.signal("paid", payload: Payment(amount: 6))
            try await world.connection.run("select millrace.signals_tell()")
            _ = try await world.bench.drain()
            #expect(try await world.client.result(of: gone, as: Int.self) == 6)
        }
    }

    @Test func `a handler that ignores that its run has ended changes nothing`() async throws {
        let runs = Locked(0)
        try await with { worker in
            worker.handle(Order.self) { order, context in
                runs.add()
                try? await context.sleep("pause", for: .seconds(60))
                if runs.value == 1 {
                    await #expect(throws: StepError.self) { try await context.step("more") {} }
                }
                return .discard("whatever came")
            }
        } _: { world in
            let id = try await world.client.enqueue(Order(id: 1))
            _ = try await world.bench.drain()
            #expect(try await world.runs(id) == "8/1")
            try await world.advance("61 s")
            _ = try await world.bench.drain()
            #expect(try await world.state(id) == "dead")
            #expect(runs.value == 2)
        }
    }

    @Test func `short sleeps keep their slot, and times that have passed are no wait`() async throws {
        try await with { worker in
            worker.handle(Order.self) { order, context in
                try await context.sleep("blink", for: .milliseconds(5))
                try await context.until("past", Date(timeIntervalSince1970: 0))
                try await context.until("local", local: "2020-02-29 12:00", zone: "Europe/Berlin")
                return .done
            }
        } _: { world in
            let id = try await world.client.enqueue(Order(id: 1))
            _ = try await world.bench.drain()
            let errors = try await world.value("select errors from millrace.job(\(id))") ?? ""
            #expect(try await world.runs(id) == "1/1", "\(errors)")
        }
    }

    @Test func `bad waits are refused with what was wrong`() async throws {
        try await with { worker in
            worker.handle(Order.self) { order, context in
                switch order.id {
                case 1: try await context.until("t", local: "2020-13-45", zone: "Europe/Berlin")
                case 2: try await context.until("t", local: "2020-01-01", zone: "Moon/Sea")
                default: _ = try await context.event("", as: Bool.self, step: "s")
                }
                return .done
            }
        } _: { world in
            for (n, words) in [(1, "is not a time"), (2, "is not a time"), (3, "name of a signal")] {
                let id = try await world.client.enqueue(Order(id: n), maxAttempts: 1)
                _ = try await world.bench.drain()
                let error = try await world.value("select errors -> 0 ->> 'error' from millrace.job(\(id))") ?? ""
                #expect(error.contains(words), "\(error)")
            }
        }
    }
}
