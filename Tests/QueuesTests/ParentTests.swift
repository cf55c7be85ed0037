import Postgres
import TestSupport
import Testing

/// A job that waits for jobs that it has made.
@Suite struct ParentTests {
    private struct Parent {
        var id: Int
        var children: [Int]
    }

    private static let two = #"{"jobs": [{"kind": "child"}, {"kind": "child"}]}"#

    private static func parent(_ connection: Connection) async throws -> Parent {
        let id = try await connection.claimedJob()
        #expect(try await connection.value("millrace.wait('1-9-\(id)', 'all', 'jobs', '\(two)')") == nil)
        try await connection.run("select millrace.register_kinds('{child}', '{null}')")
        try await connection.settleFlows()
        return Parent(
            id: id,
            children: try await connection.column("select pred from millrace.edge where succ = \(id) order by 1").map {
                Int($0) ?? 0
            })
    }

    /// Runs the children; each ends so.
    private static func end(_ children: [Int], _ outcomes: [Int], number: Int = 48, on connection: Connection)
        async throws
    {
        #expect(try await connection.claim(number: number, kinds: ["child"]) == children)
        try await connection.finish(
            zip(children, outcomes).map {
                .init(id: $0, outcome: $1, number: number + 1, error: $1 == 1 ? nil : "no")
            }, complete: [number + 1: children.count])
        try await connection.settleFlows()
    }

    @Test func `its owner sees it, and what it waits for`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            try await owner.run("select millrace.grant_enqueue('\(roles.client)')")
            let client = try await database.connect(as: roles.client)
            let id = try await client.int("select millrace.enqueue('test')")
            try await owner.openSession()
            try await owner.claim()
            try await owner.run(
                "select millrace.step_undoable('1-9-\(id)', 'charge'); select millrace.wait('1-9-\(id)', 'all', 'jobs', '\(Self.two)')"
            )
            for connection in [owner, client] {
                #expect(try await connection.state(id) == "blocked")
                let said = try await connection.value("millrace.why(\(id)) ->> 'sentence'")
                #expect(said?.contains("its step 'all' waits for 2 jobs to end") == true)
            }
            let refund = try await owner.int("select undo_job from millrace.undo")
            #expect(try await client.state(refund) == "blocked")
            #expect(
                try await client.value("millrace.why(\(refund)) ->> 'sentence'")
                    == "it undoes step 'charge' of job \(id) when that has ended without success")
            #expect(
                try await client.column("select id from millrace.own_jobs() where state = 'blocked' order by id")
                    == ["\(id)", "\(refund)"])
            #expect(try await owner.column("select i from millrace.job_ids('waiting') i") == ["\(id)"])
            await client.close()
        }
    }

    @Test(arguments: [false, true])
    func `cancelled and run again, it waits for its children whatever becomes of them`(isFlow: Bool) async throws {
        try await withConnection { connection in
            let parent = try await Self.parent(connection)
            #expect(try await connection.bool("select millrace.cancel(\(parent.id))"))
            try await connection.settleFlows()
            let again = isFlow ? "millrace.flow_retry(\(parent.id)) = 1" : "millrace.retry(\(parent.id))"
            #expect(try await connection.bool("select \(again)"))
            try await connection.settleFlows()
            #expect(try await connection.state(parent.id) == "blocked")
            try await Self.end(parent.children, [3, 1], on: connection)
            #expect(try await connection.state(parent.id) == "ready")
            #expect(try await connection.claim(number: 64) == [parent.id])
            let told = try await connection.value("millrace.wait('1-65-\(parent.id)', 'all', 'jobs', '\(Self.two)')")
            #expect(told?.contains(#""succeeded": false"#) == true && told?.contains(#""succeeded": true"#) == true)
        }
    }

    @Test func `begun afresh, it waits for no child of before`() async throws {
        try await withConnection { connection in
            let parent = try await Self.parent(connection)
            #expect(try await connection.bool("select millrace.cancel(\(parent.id))"))
            try await connection.settleFlows()
            #expect(try await connection.bool("select millrace.retry_fresh(\(parent.id))"))
            try await connection.settleFlows()
            #expect(try await connection.state(parent.id) == "ready")
            // The children go on by themselves.
            try await Self.end(parent.children, [1, 1], on: connection)
            #expect(try await connection.state(parent.id) == "ready")
        }
    }

    /// It has their results on record, one of them a failure, and died of something else.
    @Test func `run again with its flow, it is not cancelled by a child that fails again`() async throws {
        try await withConnection { connection in
            let parent = try await Self.parent(connection)
            try await Self.end(parent.children, [3, 1], on: connection)
            #expect(try await connection.claim(number: 64) == [parent.id])
            _ = try await connection.value("millrace.wait('1-65-\(parent.id)', 'all', 'jobs', '\(Self.two)')")
            try await connection.finish(
                [.init(id: parent.id, outcome: 3, number: 65, error: "no")], complete: [65: 1])
            #expect(try await connection.int("select millrace.flow_retry(\(parent.id))") == 2)
            try await connection.settleFlows()
            try await Self.end([parent.children[0]], [3], number: 80, on: connection)
            #expect(try await connection.state(parent.id) == "ready")
        }
    }

    @Test func `a parent that was put off keeps its attempts`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            try await connection.finish([.init(id: id, outcome: 4, error: "no", wait: 0)], complete: [9: 1])
            try await connection.run("select millrace.promote(null, 10)")
            #expect(try await connection.claim(number: 16) == [id])
            #expect(try await connection.value("millrace.wait('1-17-\(id)', 'all', 'jobs', '\(Self.two)')") == nil)
            #expect(try await connection.value("select attempt from millrace.job(\(id))") == "1")
            #expect(try await connection.bool("select millrace.reschedule(\(id), now() + interval '1 hour')"))
            try await connection.run("select millrace.register_kinds('{child}', '{null}')")
            let children = try await connection.column("select pred from millrace.edge order by 1").map { Int($0) ?? 0 }
            try await Self.end(children, [1, 1], on: connection)
            #expect(try await connection.state(id) == "scheduled")
            #expect(try await connection.value("select attempt from millrace.job(\(id))") == "1")
        }
    }

    @Test func `a run waits for a job of a key as often as it likes`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            let keyed =
                #"{"kind": "child", "unique_key": "c", "options": {"unique_for": 600}}"#
            let twice = "{\"jobs\": [\(keyed), \(keyed)]}"
            #expect(try await connection.value("millrace.wait('1-9-\(id)', 'one', 'jobs', '\(twice)')") == nil)
            try await connection.run("select millrace.register_kinds('{child}', '{null}')")
            let child = try await connection.int("select pred from millrace.edge")
            try await Self.end([child], [1], on: connection)
            #expect(try await connection.claim(number: 64) == [id])
            for step in ["one", "two"] {
                let told = try await connection.value(
                    "jsonb_array_length(millrace.wait('1-65-\(id)', '\(step)', 'jobs', '\(twice)') -> 'jobs')")
                #expect(told == "2", "\(step)")
            }
        }
    }

    @Test func `nothing waits for itself`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob("'test', unique_key => 'p'")
            let behind = try await connection.enqueue("'test', options => '{\"after\": [\(id)]}'")
            for job in [
                #"{"kind": "test", "unique_key": "p"}"#,
                #"{"kind": "test", "unique_key": "p", "on_conflict": "replace"}"#,
                "{\"kind\": \"test\", \"options\": {\"after\": [\(id)]}}",
                "{\"kind\": \"test\", \"options\": {\"after\": [\(behind)]}}",
            ] {
                let refused = try await connection.refusal(
                    of: "select millrace.wait('1-9-\(id)', 'all', 'jobs', '{\"jobs\": [\(job)]}')")
                #expect(refused?.sqlState == "22023", "\(job)")
                #expect(refused?.message.hasPrefix("job \(id) would wait for itself") == true, "\(job)")
            }
            let circle = try await connection.refusal(
                of: "select millrace.enqueue('test', options => '{\"after\": [\(behind)], \"before\": [\(behind)]}')")
            #expect(circle?.sqlState == "22023" && circle?.detail?.contains("options.before") == true)
            #expect(try await connection.int("select count(*) from millrace.job") == 2)
            #expect(try await connection.int("select count(*) from millrace.edge") == 1)
        }
    }

    /// The child of a child takes the place behind the parent's unique key, and the child would wait for it.
    @Test func `nor by a child's child`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob("'test', unique_key => 'p'")
            #expect(
                try await connection.value(
                    #"millrace.wait('1-9-\#(id)', 'all', 'jobs', '{"jobs": [{"kind": "child"}]}')"#) == nil)
            try await connection.run("select millrace.register_kinds('{child}', '{null}')")
            let child = try await connection.claim(number: 16)[0]
            let refused = try await connection.refusal(
                of:
                    #"select millrace.wait('1-17-\#(child)', 'all', 'jobs', '{"jobs": [{"kind": "test", "unique_key": "p", "on_conflict": "replace"}]}')"#
            )
            #expect(refused?.message.hasPrefix("job \(child) would wait for itself") == true)
        }
    }
}
