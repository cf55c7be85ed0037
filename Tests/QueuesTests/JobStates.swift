import Postgres
import TestSupport
import Testing

/// A job in one of the states, and the jobs that it waits for.
struct StateSubject {
    var id: Int
    var others: [Int] = []
    /// The job that holds its key.
    var holder: Int?
}

/// How a job comes into each state of sql/states.md.
enum JobStates {
    typealias Build = @Sendable (Connection) async throws -> StateSubject

    private static func after(_ when: String) -> Build {
        { connection in
            let other = try await connection.enqueue("'other'")
            let id = try await connection.enqueue(
                "'test', unique_key => 'k', options => '{\"after\": {\"jobs\": [\(other)], \"when\": \"\(when)\"}}'")
            try await connection.settleFlows()
            return StateSubject(id: id, others: [other])
        }
    }

    private static func waiting(_ what: String, _ options: String) -> Build {
        { connection in
            let id = try await connection.claimedJob("'test', unique_key => 'k'")
            #expect(try await connection.value("millrace.wait('1-9-\(id)', 'w', '\(what)', '\(options)')") == nil)
            try await connection.settleFlows()
            return StateSubject(
                id: id,
                others: try await connection.column("select pred from millrace.edge order by 1").map { Int($0) ?? 0 })
        }
    }

    private static func ended(_ outcome: Int) -> Build {
        { connection in
            let id = try await connection.claimedJob("'test', unique_key => 'k'")
            try await connection.finish([.init(id: id, outcome: outcome, error: "no")], complete: [9: 1])
            return StateSubject(id: id)
        }
    }

    private static func refund(_ bring: @escaping @Sendable (Connection, Order) async throws -> Void) -> Build {
        { connection in
            let order = try await connection.order(ending: 3)
            try await bring(connection, order)
            return StateSubject(id: order.refund)
        }
    }

    static let all: [String: Build] = [
        "ready": { StateSubject(id: try await $0.enqueue("'test', unique_key => 'k'")) },
        "parked": { connection in
            let id = try await connection.enqueue("'test', unique_key => 'k', limit_key => 'l'")
            try await connection.run(
                """
                with gone as (delete from millrace.ready where job = \(id) returning *)
                insert into millrace.parked (gate, lane, job, queue, kind, attempt, crashes)
                select millrace.key_gate('l', null), lane, job, queue, kind, attempt, crashes from gone
                """)
            return StateSubject(id: id)
        },
        "scheduled": {
            StateSubject(
                id: try await $0.enqueue("'test', unique_key => 'k', run_at => millrace.now() + interval '1 hour'"))
        },
        "retrying": { connection in
            let id = try await connection.claimedJob("'test', unique_key => 'k'")
            try await connection.finish([.init(id: id, outcome: 4, error: "no", wait: 3600)], complete: [9: 1])
            return StateSubject(id: id)
        },
        "after": after("succeeded"), "after ended": after("ended"), "after failed": after("dead"),
        "spawned": { connection in
            try await connection.openSession()
            let other = try await connection.enqueue("'other'")
            try await connection.claim()
            let id = try await connection.enqueue(
                "'test', unique_key => 'k', options => '{\"fence\": \"1-9-\(other)\"}'")
            return StateSubject(id: id, others: [other])
        },
        "follower": { connection in
            let holder = try await connection.claimedJob("'test', unique_key => 'k'")
            let id = try await connection.enqueue("'test', unique_key => 'k', on_conflict => 'replace'")
            return StateSubject(id: id, holder: holder)
        },
        "running": { StateSubject(id: try await $0.claimedJob("'test', unique_key => 'k'")) },
        "sleeping": waiting("time", #"{"seconds": 3600}"#),
        "waits for a signal": waiting("signal", #"{"name": "paid", "seconds": 3600}"#),
        "waits for an answer": waiting("approval", #"{"request": 1, "notify": ["ada"], "seconds": 3600}"#),
        "waits for children": waiting("jobs", #"{"jobs": [{"kind": "other"}, {"kind": "other"}]}"#),
        "undoable": { StateSubject(id: try await $0.order("'test', unique_key => 'k'").id) },
        "undo planned": { connection in
            let id = try await connection.claimedJob()
            try await connection.run("select millrace.step_undoable('1-9-\(id)', 'charge', '1')")
            try await connection.settleFlows()
            return StateSubject(id: try await connection.int("select undo_job from millrace.undo"), others: [id])
        },
        "undo due": refund { _, _ in },
        "undo retrying": refund { try await $0.runRefund(of: $1, outcome: 4) },
        "undo dead": refund { try await $0.runRefund(of: $1, outcome: 3) },
        "undo cancelled": refund { connection, order in
            #expect(try await connection.bool("select millrace.cancel(\(order.refund))"))
            try await connection.settleFlows()
        },
        "being undone": { StateSubject(id: try await $0.order(ending: 3).id) },
        "undone at last": { connection in
            let order = try await connection.order(ending: 3)
            #expect(try await connection.claim(number: 48) == [order.refund])
            try await connection.run("select millrace.step_undone('1-49-\(order.refund)')")
            return StateSubject(id: order.id)
        },
        "undone": { connection in
            let order = try await connection.order(ending: 3)
            try await connection.runRefund(of: order, outcome: 1)
            return StateSubject(id: order.id)
        },
        "succeeded": ended(1),
        "cancelled": { connection in
            let id = try await connection.enqueue("'test', unique_key => 'k'")
            #expect(try await connection.bool("select millrace.cancel(\(id))"))
            try await connection.settleFlows()
            return StateSubject(id: id)
        },
        "dead": ended(3),
    ]
}
