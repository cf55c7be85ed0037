import Postgres
import TestSupport
import Testing

/// A job that begins with the steps of another, and a record that an admin mends.
@Suite struct ForkTests {
    /// A job with three steps on record, whose run has ended so.
    private func job(
        _ arguments: String = "'test', '{\"n\": 1}'", ending end: Int = 3, _ connection: Connection
    ) async throws -> Int {
        let id = try await connection.claimedJob(arguments)
        for name in ["reserve", "charge", "pack"] {
            try await connection.run("select millrace.step('1-9-\(id)', '\(name)', to_jsonb('\(name)'::text))")
        }
        _ = try await connection.finish(
            [.init(id: id, outcome: end, error: end == 1 ? nil : "no", wait: end == 4 ? 60 : nil)], complete: [9: 1])
        return id
    }

    private func names(_ id: Int, _ connection: Connection) async throws -> [String] {
        try await connection.column("select name from millrace.steps(\(id))")
    }

    /// All are recorded at one time here: the clock of a test stands still within a transaction.
    @Test func `a fork has the steps before the named one, in their order, and all that belongs to the job`()
        async throws
    {
        try await withConnection { connection in
            let id = try await job(
                "'test', '{\"n\": 1}', priority => 2, unique_key => 'k', tenant => 't', tags => '{a,b}', metadata => '{\"m\": 1}', max_attempts => 7, options => '{\"timeout\": 9, \"expires_at\": \"2030-01-01T00:00:00Z\"}'",
                connection)
            #expect(
                try await connection.records("select name, taken from millrace.fork_preview(\(id), 'pack')")
                    == ["(reserve,t)", "(charge,t)", "(pack,f)"])
            let fork = try await connection.int("select millrace.fork(\(id), 'pack')")
            #expect(try await names(fork, connection) == ["reserve", "charge"])
            #expect(
                try await connection.column("select value from millrace.steps(\(fork))") == [
                    "\"reserve\"", "\"charge\"",
                ])
            #expect(
                try await connection.records(
                    "select kind, queue, state, priority, args, attempt, max_attempts, unique_key, tenant, tags, metadata from millrace.job(\(fork))"
                ) == ["(test,default,ready,2,\"{\"\"n\"\": 1}\",0,7,k,t,\"{a,b}\",\"{\"\"m\"\": 1}\")"])
            #expect(
                try await connection.value("select options from millrace.job where id = \(fork)") == "{\"timeout\": 9}")
            // The key is held now, so the next one has none.
            let all = try await connection.int("select millrace.fork(\(id), args => '{\"n\": 2}', queue => 'other')")
            #expect(try await names(all, connection) == ["reserve", "charge", "pack"])
            #expect(
                try await connection.records("select queue, args, unique_key from millrace.job(\(all))")
                    == ["(other,\"{\"\"n\"\": 2}\",)"])
            #expect(
                try await connection.value("millrace.forks_of(\(id))")
                    == #"{"as": [{"job": \#(fork), "step": "pack"}, {"job": \#(all), "step": null}], "from": null}"#)
            #expect(
                try await connection.value("millrace.forks_of(\(fork)) -> 'from'")
                    == #"{"job": \#(id), "step": "pack"}"#)
        }
    }

    @Test func `a job that has not ended is forked only if both may go on, and nobody relies on what another may undo`()
        async throws
    {
        try await withConnection { connection in
            let id = try await job(ending: 4, connection)
            let living = try await connection.refusal(of: "select millrace.fork(\(id), 'pack')")
            #expect(living?.sqlState == "55000" && living?.message.contains("has not ended") == true)
            #expect(try await connection.int("select millrace.fork(\(id), 'pack', live => true)") > id)
            try await connection.run("select millrace.undo_plan(\(id), 'charge')")
            let owed = try await connection.refusal(of: "select millrace.fork(\(id), 'pack', live => true)")
            #expect(
                owed?.sqlState == "55000" && owed?.message.contains("charge") == true, "\(String(describing: owed))")
            #expect(try await connection.int("select millrace.fork(\(id), 'charge', live => true)") > id)
            let unknown = try await connection.refusal(of: "select millrace.fork(\(id), 'chrage', live => true)")
            #expect(unknown?.sqlState == "P0002" && unknown?.hint?.contains("reserve, charge, pack") == true)
            #expect(try await connection.refusal(of: "select millrace.fork(0)")?.sqlState == "P0002")
            let undo = try await connection.int("select undo_job from millrace.undo")
            #expect(
                try await connection.refusal(of: "select millrace.fork(\(undo), live => true)")?.sqlState == "55000")
        }
    }

    @Test func `encrypted arguments are copied as they are, and replaced by encrypted ones only`() async throws {
        try await withConnection { connection in
            let sealed = #"{"v": 1, "key": "k", "data": "AAAA", "$millrace": "sealed"}"#
            let id = try await job("'test', '\(sealed)'", connection)
            let fork = try await connection.int("select millrace.fork(\(id))")
            #expect(try await connection.value("select args from millrace.job(\(fork))") == sealed)
            #expect(try await connection.refusal(of: "select millrace.fork(\(id), args => '{}')")?.sqlState == "22023")
            let other = sealed.replacing("AAAA", with: "BBBB")
            #expect(try await connection.int("select millrace.fork(\(id), args => '\(other)')") > fork)
            let audited = try await connection.bool("select millrace.step_set(\(id), 'charge', '{\"card\": 4}')")
            #expect(audited)
            #expect(
                try await connection.records(
                    "select detail ->> 'before', detail ->> 'after' from millrace.audit where action = 'job.step_set'")
                    == ["([redacted],[redacted])"])
        }
    }

    @Test func `operators fork as they retry, with the arguments there are; admins mend records; clients do neither`()
        async throws
    {
        try await RoleTests.withRoles { database, owner, roles in
            let id = try await job(ending: 1, owner)
            let worker = try await database.connect(as: roles.worker)
            let admin = try await database.connect(as: roles.admin)
            let client = try await database.connect(as: roles.client)
            #expect(try await worker.int("select millrace.fork(\(id), args => '{}')") > id)
            #expect(try await admin.int("select millrace.fork(\(id), 'charge')") > id)
            #expect(try await admin.bool("select millrace.step_set(\(id), 'charge', '1')"))
            #expect(try await admin.bool("select millrace.step_forget(\(id), 'charge')"))
            #expect(
                try await admin.records("select action, object = '\(id)', detail ->> 'step' from millrace.audit_list()")
                    == ["(job.step_forget,t,charge)", "(job.step_set,t,charge)", "(job.fork,t,charge)"])
            for call in ["step_set(\(id), 'a', '1')", "step_forget(\(id), 'a')"] {
                #expect(try await worker.refusal(of: "select millrace.\(call)")?.sqlState == "42501", "\(call)")
            }
            for call in ["fork(\(id))", "fork_preview(\(id))", "forks_of(\(id))", "step_set(\(id), 'a', '1')"] {
                #expect(try await client.refusal(of: "select millrace.\(call)")?.sqlState == "42501", "\(call)")
            }
            for connection in [worker, admin, client] { await connection.close() }
        }
    }

    @Test func `a step's value is set while no run is under way, redacted in the audit, and found by the next run`()
        async throws
    {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            try await connection.run("select millrace.step('1-9-\(id)', 'login', '{\"token\": \"old\", \"user\": 1}')")
            let running = try await connection.refusal(of: "select millrace.step_set(\(id), 'login', '1')")
            #expect(running?.sqlState == "55000" && running?.message.contains("running") == true)
            _ = try await connection.finish([.init(id: id, outcome: 4, error: "no", wait: 0)], complete: [9: 1])
            #expect(
                try await connection.bool(
                    "select millrace.step_set(\(id), 'login', '{\"token\": \"new\", \"user\": 2}')"))
            #expect(
                try await !connection.bool(
                    "select millrace.step_set(\(id), 'login', '{\"token\": \"new\", \"user\": 2}')"))
            #expect(
                try await connection.value("select detail::text from millrace.audit")
                    == #"{"step": "login", "after": {"user": 2, "token": "[redacted]"}, "before": {"user": 1, "token": "[redacted]"}}"#
            )
            let unknown = try await connection.refusal(of: "select millrace.step_set(\(id), 'pay', '1')")
            #expect(unknown?.sqlState == "P0002" && unknown?.hint?.contains("login") == true)
            #expect(try await connection.bool("select millrace.step_set(\(id), 'pay', '7', adds => true)"))
            #expect(try await names(id, connection) == ["login", "pay"])
            #expect(try await connection.bool("select millrace.retry(\(id))"))
            try await connection.openSession(2)
            try await connection.claim(2, number: 16)
            #expect(try await connection.value("millrace.step('2-17-\(id)', 'pay', '9')") == "7")
        }
    }

    @Test func `a job goes on with what its wait is set to, and a forgotten question is asked again`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            #expect(
                try await connection.value("millrace.wait('1-9-\(id)', 'ask', 'approval', '{\"request\": 1}')") == nil)
            let wrong = try await connection.refusal(of: "select millrace.step_set(\(id), 'ask', 'true')")
            #expect(wrong?.sqlState == "22023")
            let yes = #"{"value": {"approved": true}}"#
            #expect(try await connection.bool("select millrace.step_set(\(id), 'ask', '\(yes)')"))
            #expect(try await connection.value("select state from millrace.job(\(id))") == "ready")
            #expect(try await connection.int("select count(*) from millrace.wait") == 0)
            #expect(try await connection.value("select asked from millrace.step") == #"{"what": "approval"}"#)
            #expect(try await connection.bool("select millrace.step_forget(\(id), 'ask')"))
            #expect(try await connection.int("select count(*) from millrace.approval") == 0)
            #expect(try await connection.value("select state from millrace.job(\(id))") == "ready")
            #expect(try await connection.refusal(of: "select millrace.step_forget(\(id), 'ask')")?.sqlState == "P0002")
        }
    }

    @Test func `an undo of a forgotten step is forgotten, and those before it still run in their turn`() async throws {
        try await withConnection { connection in
            let id = try await job(ending: 4, connection)
            for name in ["reserve", "charge", "pack"] {
                try await connection.run("select millrace.undo_plan(\(id), '\(name)')")
            }
            let last = try await connection.int("select undo_job from millrace.undo where step = 'pack'")
            #expect(try await connection.bool("select millrace.step_forget(\(id), 'charge')"))
            #expect(try await connection.column("select step from millrace.undo order by 1") == ["pack", "reserve"])
            #expect(try await connection.bool("select millrace.cancel(\(id))"))
            while try await connection.bool("select more or told > 0 from millrace.flows_advance()") {}
            #expect(
                try await connection.column("select id from millrace.jobs where state = 'ready'").contains("\(last)"))
        }
    }
}
