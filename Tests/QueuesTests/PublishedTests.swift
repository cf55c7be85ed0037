import Postgres
import TestSupport
import Testing

extension Connection {
    func published(_ id: Int, after: Int = 0) async throws -> [String] {
        try await records("select n, key, value, attempt from millrace.published(\(id), \(after))")
    }

    fileprivate func publish(_ token: String, _ arguments: String) async throws -> Int {
        try await int("select millrace.publish('\(token)', \(arguments))")
    }
}

@Suite struct PublishedTests {
    @Test func `values are numbered in their order, one with a key is there once, and readers go on behind a number`()
        async throws
    {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            let token = "1-9-\(id)"
            #expect(try await connection.publish(token, "'{\"n\": 1}'") == 1)
            #expect(try await connection.publish(token, "'2', 'two'") == 2)
            #expect(try await connection.publish(token, "'22', 'two'") == 2)
            // The same call again, after a lost answer, and the next one.
            #expect(try await connection.publish(token, "'3', call => 7") == 3)
            #expect(try await connection.publish(token, "'3', call => 7") == 3)
            #expect(try await connection.publish(token, "'3', call => 8") == 4)
            #expect(
                try await connection.published(id)
                    == ["(1,,\"{\"\"n\"\": 1}\",1)", "(2,two,2,1)", "(3,,3,1)", "(4,,3,1)"])
            #expect(try await connection.published(id, after: 2) == ["(3,,3,1)", "(4,,3,1)"])
            #expect(
                try await connection.column("select n from millrace.published(\(id), 1, 2)") == ["2", "3"])
            #expect(
                try await connection.refusal(of: "select millrace.published(\(id), 0, 501)")?.sqlState == "22023")
        }
    }

    @Test func `when its lease is gone a run adds nothing, and values of the next run say which it is`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            _ = try await connection.publish("1-9-\(id)", "'1', 'one'")
            _ = try await connection.publish("1-9-\(id)", "'2', call => 1")
            try await connection.run("select millrace.state_put('1-9-\(id)', '\"first\"')")
            _ = try await connection.finish([.init(id: id, outcome: 4, error: "no", wait: 0)], complete: [9: 1])
            _ = try await connection.value("select moved from millrace.promote(null, 5)")
            try await connection.claim(number: 16)
            for call in ["publish('1-9-\(id)', '9')", "state_put('1-9-\(id)', '9')"] {
                let lost = try await connection.refusal(of: "select millrace.\(call)")
                #expect(lost?.sqlState == "55000" && lost?.detail?.contains("lease_lost") == true, "\(call)")
            }
            #expect(try await connection.publish("1-17-\(id)", "'1', 'one'") == 1)
            #expect(try await connection.publish("1-17-\(id)", "'2', call => 1") == 3)
            #expect(try await connection.published(id) == ["(1,one,1,1)", "(2,,2,1)", "(3,,2,2)"])
            #expect(
                try await connection.records("select value, attempt, published from millrace.state_value(\(id))")
                    == ["(\"\"\"first\"\"\",1,3)"])
            try await connection.run("select millrace.state_put('1-17-\(id)', null)")
            #expect(
                try await connection.records("select value, attempt from millrace.state_value(\(id))") == ["(null,2)"])
            _ = try await connection.finish([.init(id: id, outcome: 1, number: 17)], complete: [17: 1])
            #expect(
                try await connection.refusal(of: "select millrace.publish('1-17-\(id)', '9')")?.sqlState == "55000")
            #expect(try await connection.published(id).count == 3)
        }
    }

    @Test func `a stream has its bounds, and so has a value`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            let token = "1-9-\(id)"
            for call in ["publish", "state_put"] {
                let refusal = try await connection.refusal(
                    of: "select millrace.\(call)('\(token)', to_jsonb(repeat('x', 1048575)))")
                #expect(refusal?.sqlState == "53400" && refusal?.detail?.contains("value") == true)
            }
            #expect(
                try await connection.refusal(of: "select millrace.publish('\(token)', '1', repeat('x', 513))")?
                    .sqlState == "22023")
            #expect(try await connection.publish(token, "'1', 'one'") == 1)
            for full in ["kept = 10000, bytes = 0", "kept = 1, bytes = 16777216"] {
                try await connection.run("update millrace.output set \(full)")
                let refusal = try await connection.refusal(of: "select millrace.publish('\(token)', '2')")
                #expect(refusal?.sqlState == "53400" && refusal?.message.contains("is full") == true)
                #expect(try await connection.publish(token, "'1', 'one'") == 1)  // it is there
            }
            try await connection.run("update millrace.output set kept = 9999, bytes = 16777215")
            #expect(try await connection.publish(token, "'2'") == 2)
        }
    }

    @Test func `a job that begins afresh has given out nothing, and its numbers go on`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            _ = try await connection.publish("1-9-\(id)", "'1', 'one'")
            try await connection.run("select millrace.state_put('1-9-\(id)', '1')")
            _ = try await connection.finish([.init(id: id, outcome: 3, error: "no")], complete: [9: 1])
            #expect(try await connection.bool("select millrace.retry_fresh(\(id))"))
            #expect(try await connection.published(id).isEmpty)
            #expect(
                try await connection.records("select value, published from millrace.state_value(\(id))") == ["(,1)"])
            try await connection.claim(number: 16)
            #expect(try await connection.publish("1-17-\(id)", "'1', 'one'") == 2)
        }
    }

    @Test func `a number that is drawn first is read first`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let other = try await database.connect()
            let id = try await connection.claimedJob()
            try await connection.run("begin; select millrace.publish('1-9-\(id)', '\"slow\"')")
            let process = try await other.int("select pg_backend_pid()")
            let watcher = try await database.connect()
            async let second = other.int("select millrace.publish('1-9-\(id)', '\"quick\"')")
            try await waitUntilBlocked(process, seenBy: watcher)
            #expect(try await watcher.published(id).isEmpty)
            try await connection.run("commit")
            #expect(try await second == 2)
            #expect(
                try await watcher.column("select value from millrace.published(\(id))") == ["\"slow\"", "\"quick\""])
            for connection in [connection, other, watcher] { await connection.close() }
        }
    }

    @Test func `a client reads what its own jobs give out, and writes nothing`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            try await owner.run("select millrace.grant_enqueue('\(roles.client)')")
            let client = try await database.connect(as: roles.client)
            let neighbour = try await database.connect(as: roles.neighbour)
            let worker = try await database.connect(as: roles.worker)
            let id = try await client.enqueue()
            try await owner.openSession()
            try await owner.claim()
            try await worker.run(
                "select millrace.publish('1-9-\(id)', '1'); select millrace.state_put('1-9-\(id)', '{\"n\": 1}')")
            #expect(try await client.published(id) == ["(1,,1,1)"])
            #expect(try await client.column("select value from millrace.state_value(\(id))") == ["{\"n\": 1}"])
            for call in ["published(\(id))", "state_value(\(id))"] {
                #expect(try await neighbour.refusal(of: "select millrace.\(call)")?.sqlState == "P0002", "\(call)")
            }
            for call in ["publish('1-9-\(id)', '2')", "state_put('1-9-\(id)', '2')"] {
                #expect(try await client.refusal(of: "select millrace.\(call)")?.sqlState == "42501", "\(call)")
            }
        }
    }
}
