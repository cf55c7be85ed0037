import Postgres
import TestSupport
import Testing

extension Connection {
    /// One job, claimed by session 1 in lease 9.
    func claimedJob(_ arguments: String = "'test'") async throws -> Int {
        let id = try await enqueue(arguments)
        try await openSession()
        try await claim()
        return id
    }

    func steps(_ id: Int) async throws -> [String] {
        try await records("select name, value, attempt from millrace.steps(\(id))")
    }
}

@Suite struct StepTests {
    @Test func `a step is recorded once, and the earlier value stays`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            #expect(try await connection.value("millrace.step('1-9-\(id)', 'charge', '{\"n\": 1}')") == "{\"n\": 1}")
            #expect(try await connection.value("millrace.step('1-9-\(id)', 'charge', '{\"n\": 2}')") == "{\"n\": 1}")
            #expect(try await connection.value("millrace.step('1-9-\(id)', 'mail')") == "null")
            #expect(try await connection.steps(id) == ["(charge,\"{\"\"n\"\": 1}\",1)", "(mail,null,1)"])
        }
    }

    @Test func `after a rescue the old token records nothing, and the next run finds what is there`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            try await connection.run("select millrace.step('1-9-\(id)', 'one', '1')")
            _ = try await connection.rescue()
            let lost = try await connection.refusal(of: "select millrace.step('1-9-\(id)', 'two', '2')")
            #expect(lost?.sqlState == "55000" && lost?.detail?.contains("lease_lost") == true)
            try await connection.openSession(2)
            try await connection.claim(2, number: 16)
            #expect(
                try await connection.refusal(of: "select millrace.step('1-9-\(id)', 'two', '2')")?.sqlState == "55000")
            #expect(try await connection.value("millrace.step('2-17-\(id)', 'one', '9')") == "1")
            #expect(try await connection.value("millrace.step('2-17-\(id)', 'two', '9')") == "9")
            #expect(try await connection.steps(id) == ["(one,1,1)", "(two,9,1)"])
        }
    }

    @Test func `a run that has ended records nothing, though its batch goes on`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue()
            _ = try await connection.claimedJob()
            #expect(try await connection.finish([.init(id: id, outcome: 1)], partial: [9]) == [9])
            let ended = try await connection.refusal(of: "select millrace.step('1-9-\(id)', 'late')")
            #expect(ended?.sqlState == "55000" && ended?.detail?.contains("lease_lost") == false)
            #expect(try await connection.steps(id).isEmpty)
        }
    }

    @Test func `a step in an open transaction keeps a rescuer away, and goes with its writes`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let handler = try await database.connect()
            let id = try await connection.claimedJob()
            try await connection.run("create table public.ledger (n int)")
            try await handler.run(
                "begin; insert into public.ledger values (1); select millrace.step('1-9-\(id)', 'charge', '1')")
            #expect(try await connection.rescue() == "(0,0,0,1)")
            try await handler.run("rollback")
            #expect(try await connection.steps(id).isEmpty)
            #expect(try await connection.rescue()?.hasPrefix("(1,1,0,0") == true)
            let late = try await handler.refusal(
                of:
                    "begin; insert into public.ledger values (2); select millrace.step('1-9-\(id)', 'charge', '1'); commit"
            )
            #expect(late?.sqlState == "55000")
            try await handler.run("rollback")
            #expect(try await connection.int("select count(*) from public.ledger") == 0)
            for connection in [connection, handler] { await connection.close() }
        }
    }

    @Test func `two that record the same step at once get the same value`() async throws {
        try await withDatabase { database in
            let first = try await database.connect()
            let second = try await database.connect()
            let id = try await first.claimedJob()
            let process = try await second.process()
            try await first.run("begin; select millrace.step('1-9-\(id)', 'charge', '1')")
            async let other = second.value("millrace.step('1-9-\(id)', 'charge', '2')")
            let watcher = try await database.connect()
            try await waitUntilBlocked(process, seenBy: watcher)
            try await first.run("commit")
            #expect(try await other == "1")
            #expect(try await watcher.steps(id) == ["(charge,1,1)"])
            for connection in [first, second, watcher] { await connection.close() }
        }
    }

    @Test func `names, values, tokens and numbers of steps have their bounds`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            let token = "'1-9-\(id)'"
            for (call, code) in [
                ("\(token), ''", "22023"), ("\(token), null", "22023"), ("\(token), repeat('x', 129)", "22023"),
                ("'1-9', 'a'", "22023"), ("null, 'a'", "22023"), ("'1-9-\(id + 1)', 'a'", "55000"),
                ("\(token), 'a', to_jsonb(repeat('x', 1048577))", "53400"), ("\(token), 'a', '{'", "22P02"),
                ("\(token), 'a', '\"\\u0000\"'", "22P05"),
            ] {
                let error = try await connection.refusal(of: "select millrace.step(\(call))")
                #expect(error?.sqlState == code, "\(call): \(error?.message ?? "allowed")")
            }
            #expect(try await connection.steps(id).isEmpty)
            try await connection.run("select millrace.step(\(token), repeat('ä', 128), to_jsonb(repeat('x', 1048000)))")
            try await connection.run("select millrace.step(\(token), 's' || n) from generate_series(2, 1000) n")
            let full = try await connection.refusal(of: "select millrace.step(\(token), 'one too many')")
            #expect(full?.sqlState == "53400" && full?.message.contains("1000 steps") == true)
            #expect(try await connection.value("millrace.step(\(token), 's7', '7')") == "null")
        }
    }

    @Test func `a redrive keeps the steps, a fresh one forgets them`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            try await connection.run("select millrace.step('1-9-\(id)', 'one', '1')")
            try await connection.report(id, fraction: 0.5)
            _ = try await connection.finish([.init(id: id, outcome: 3, error: "no")], complete: [9: 1])
            #expect(try await connection.bool("select millrace.retry(\(id))"))
            #expect(try await connection.steps(id) == ["(one,1,1)"])
            #expect(try await connection.bool("select millrace.cancel(\(id))"))
            #expect(
                try await connection.records("select outcome from millrace.jobs_do('retry_fresh', array[\(id)])")
                    == ["(done)"])
            #expect(try await connection.steps(id).isEmpty)
            #expect(try await connection.value("select progress from millrace.job(\(id))") == nil)
            #expect(try await !connection.bool("select millrace.retry_fresh(\(id))"))
        }
    }

    /// Its steps were done for the old arguments.
    @Test func `a job that is replaced between two runs does all its steps again`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob("'test', '1', unique_key => 'k'")
            try await connection.run("select millrace.step('1-9-\(id)', 'one', '1')")
            _ = try await connection.finish([.init(id: id, outcome: 4, error: "no", wait: 60)], complete: [9: 1])
            #expect(try await connection.steps(id).count == 1)
            #expect(try await connection.enqueue("'test', '2', unique_key => 'k', on_conflict => 'replace'") == id)
            #expect(try await connection.steps(id).isEmpty)
        }
    }
}
