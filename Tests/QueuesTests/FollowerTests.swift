import Foundation
import Postgres
import RoomSchemas
import Schema
import TestSupport
import Testing

/// A job that waits for another is told of its end, however the two cross.
@Suite struct FollowerTests {
    /// What ends a job without a worker, or in a caller's own transaction.
    enum End: String, CaseIterable {
        case cancel, flowCancel, bulkCancel, cancelPage, delete, bulkDelete, complete

        func sql(_ id: Int) -> String {
            switch self {
            case .cancel: "select millrace.cancel(\(id))"
            case .flowCancel: "select millrace.flow_cancel(\(id))"
            case .bulkCancel:
                "select millrace.operation_start('cancel', '{\"ids\": [\(id)]}'); select millrace.operation_step()"
            case .cancelPage: "select millrace.jobs_do('cancel', array[\(id)])"
            case .delete: "select millrace.job_delete(\(id))"
            case .bulkDelete:
                "select millrace.operation_start('delete', '{\"ids\": [\(id)]}'); select millrace.operation_step()"
            case .complete: "select millrace.complete('1-9-\(id)')"
            }
        }
    }

    enum Follower: String, CaseIterable {
        /// Enqueued with `after`.
        case after
        /// A run that waits for the job, which it finds by its unique key.
        case parent
    }

    private static func follow(_ id: Int, as follower: Follower, on connection: Connection) async throws -> Int {
        switch follower {
        case .after:
            return try await connection.enqueue(
                "'test', options => '{\"after\": {\"jobs\": [\(id)], \"when\": \"ended\"}}'")
        case .parent:
            let parent = try await connection.enqueue("'other'")
            try await connection.run("select millrace.register_kinds('{other}', '{null}')")
            #expect(try await connection.claim(number: 24, kinds: ["other"]) == [parent])
            let jobs = #"{"jobs": [{"kind": "test", "unique_key": "k"}]}"#
            #expect(try await connection.value("millrace.wait('1-25-\(parent)', 'all', 'jobs', '\(jobs)')") == nil)
            return parent
        }
    }

    /// 1. A transaction of a handler makes jobs that wait for its run, and stays open. 2. The run records its own end by another session. 3. Workers
    /// take the note of that end. 4. The transaction commits.
    private static func endBeside(_ making: String, in database: TestDatabase) async throws -> Connection {
        let handler = try await database.connect()
        let connection = try await database.connect()
        #expect(try await connection.enqueue() == 1)
        try await connection.openSession()
        try await connection.claim()
        try await handler.run("begin; \(making)")
        #expect(try await connection.bool("select millrace.complete('1-9-1')"))
        try await connection.settleFlows()
        try await handler.run("commit")
        return connection
    }

    @Test(arguments: [
        "select millrace.spawn('1-9-1', 'test', array['{}', '{}'])",
        "select millrace.enqueue('test', options => '{\"fence\": \"1-9-1\"}')",
    ]) func `what a run makes beside its own end begins after it`(_ making: String) async throws {
        try await withDatabase { database in
            let connection = try await Self.endBeside(making, in: database)
            try await connection.settleFlows()
            #expect(
                try await connection.column("select distinct state from millrace.jobs where id <> 1") == ["ready"])
        }
    }

    @Test(arguments: ["millrace.job_delete", "millrace.cancel"])
    func `what a run makes beside its own end begins after it, also where the first of it is taken away at once`(
        _ taking: String
    ) async throws {
        try await withDatabase { database in
            let connection = try await Self.endBeside(
                "select millrace.spawn('1-9-1', 'test', array['{}', '{}', '{}'])", in: database)
            let first = try await connection.int("select min(id) from millrace.job where id <> 1")
            try await connection.run("select \(taking)(\(first))")
            try await connection.settleFlows()
            #expect(
                try await connection.column("select state from millrace.jobs where id not in (1, \(first))") == [
                    "ready", "ready",
                ])
        }
    }

    /// 1. A transaction ends the job, and stays open. 2. Another job is enqueued that waits for it. 3. Workers look. 4. The transaction commits.
    @Test(
        arguments: End.allCases,
        [("read committed", Follower.after), ("repeatable read", .after), ("read committed", .parent)])
    func `a follower of a job whose end is not committed is told`(
        end: End, way: (isolation: String, follower: Follower)
    ) async throws {
        // Who wants the key of a job that is being deleted waits for the deletion.
        if way.follower == .parent, end == .delete || end == .bulkDelete { return }
        try await withDatabase { database in
            let ending = try await database.connect()
            let connection = try await database.connect()
            let id = try await connection.enqueue("'test', unique_key => 'k'")
            try await connection.openSession()
            if end == .complete { try await connection.claim() }
            try await ending.run("begin isolation level \(way.isolation); \(end.sql(id))")
            let follower = try await Self.follow(id, as: way.follower, on: connection)
            try await connection.settleFlows()
            #expect(try await connection.state(follower) == "blocked")
            try await ending.run("commit")
            try await connection.settleFlows()
            #expect(try await connection.state(follower) == "ready")
            for connection in [ending, connection] { await connection.close() }
        }
    }

    /// 1. A transaction has its snapshot. 2. Another job is enqueued that waits for the first, and workers look: that lives. 3. The transaction,
    /// which does not see the other, ends the first.
    @Test(arguments: End.allCases) func `a follower that an end cannot see is told`(end: End) async throws {
        try await withDatabase { database in
            let ending = try await database.connect()
            let connection = try await database.connect()
            let id = try await connection.enqueue("'test', unique_key => 'k'")
            try await connection.openSession()
            if end == .complete { try await connection.claim() }
            try await ending.run("begin isolation level repeatable read; select count(*) from millrace.job")
            let follower = try await Self.follow(id, as: .after, on: connection)
            try await connection.settleFlows()
            #expect(try await connection.int("select count(*) from millrace.blocked where fresh") == 0)
            try await ending.run("\(end.sql(id)); commit")
            try await connection.settleFlows()
            #expect(try await connection.state(follower) == "ready")
            for connection in [ending, connection] { await connection.close() }
        }
    }

    /// 1. A transaction cancels one follower, or holds what is known of one, and stays open. 2. What they wait for ends, and so does another job.
    @Test(arguments: [true, false])
    func `an open transaction that holds one follower keeps no other waiting`(holdsEdge: Bool) async throws {
        try await withDatabase(.movableClock) { database in
            let user = try await database.connect()
            let connection = try await database.connect()
            func follower(of id: Int) async throws -> Int {
                try await connection.enqueue("'test', options => '{\"after\": {\"jobs\": [\(id)]}}'")
            }
            let (first, second) = (try await connection.enqueue(), try await connection.enqueue())
            let held = try await follower(of: first)
            let beside = try await follower(of: first)
            let other = try await follower(of: second)
            try await connection.settleFlows()
            try await user.run(
                holdsEdge
                    ? "begin; select from millrace.edge where succ = \(held) for update"
                    : "begin; select millrace.cancel(\(held))")
            // Cancelled, and so their followers are.
            try await connection.run("select millrace.cancel(\(first)), millrace.cancel(\(second))")
            for _ in 0..<3 { _ = try await connection.value("select more from millrace.flows_advance()") }
            #expect(try await connection.state(other) == "cancelled")
            if !holdsEdge { #expect(try await connection.state(beside) == "cancelled") }
            #expect(try await connection.state(held) == "blocked")
            try await user.run("rollback")
            try await connection.run("select millrace.test_clock_advance('2 s')")
            try await connection.settleFlows()
            for id in [held, beside] { #expect(try await connection.state(id) == "cancelled") }
            #expect(try await connection.int("select count(*) from millrace.ending") == 0)
            for connection in [user, connection] { await connection.close() }
        }
    }

    @Test func `ends that nobody waits for are looked at and forgotten, however many there are`() async throws {
        try await withConnection { connection in
            try await connection.run("select millrace.enqueue_bulk('test', array_fill('{}'::text, array[2500]))")
            _ = try await connection.start("cancel", #"{"kind": "test"}"#)
            while try await connection.value("select operation from millrace.operation_step()") != nil {}
            let last = try await connection.enqueue()
            let follower = try await connection.enqueue(
                "'test', options => '{\"after\": {\"jobs\": [\(last)], \"when\": \"ended\"}}'")
            #expect(try await connection.bool("select millrace.cancel(\(last))"))
            var looks = 0
            while try await connection.bool("select more from millrace.flows_advance()") { looks += 1 }
            #expect(looks == 2)
            #expect(try await connection.int("select count(*) from millrace.ending") == 0)
            #expect(try await connection.state(follower) == "ready")
        }
    }

    @Test(arguments: [1, 3])
    func `a job of a run, deleted while that ran and brought back afterwards, goes the way of all that it made`(
        outcome: Int
    ) async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let parent = try await connection.enqueue()
            try await connection.claim()
            let made = try await connection.int(
                "select first from millrace.spawn('1-9-\(parent)', 'test', array['{}'])")
            let deletion = try await connection.start("delete", "{\"ids\": [\(made)]}")
            func step() async throws {
                while try await connection.value("select operation from millrace.operation_step()") != nil {}
            }
            try await step()
            try await connection.finish(
                [.init(id: parent, outcome: outcome, error: outcome == 3 ? "because" : nil)], complete: [9: 1])
            try await connection.settleFlows()
            try await connection.run("select millrace.operation_undo(\(deletion))")
            try await step()
            #expect(try await connection.state(made) == "blocked")
            try await connection.settleFlows()
            if outcome == 1 {
                #expect(try await connection.state(made) == "ready")
            } else {
                #expect(try await connection.int("select count(*) from millrace.job where id = \(made)") == 0)
            }
        }
    }

    @Test func `jobs that earlier versions have forgotten are found by the migration`() async throws {
        try await withConnection { connection in
            let first = try await connection.enqueue()
            let follower = try await connection.enqueue(
                "'test', options => '{\"after\": {\"jobs\": [\(first)], \"when\": \"ended\"}}'")
            try await connection.settleFlows()
            #expect(try await connection.bool("select millrace.cancel(\(first))"))
            try await connection.run("delete from millrace.ending")
            try await connection.settleFlows()
            #expect(try await connection.state(follower) == "blocked")
            let script = try #require(RoomSchemas.adoption.scripts.first { $0.name.hasSuffix("looked_at_again") })
            let update = try #require(
                String(decoding: script.bytes, as: UTF8.self).components(separatedBy: "\n\n").last)
            try await connection.run(update)
            try await connection.settleFlows()
            #expect(try await connection.state(follower) == "ready")
        }
    }
}
