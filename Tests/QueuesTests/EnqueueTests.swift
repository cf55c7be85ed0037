import MillraceQueues
import Postgres
import Synchronization
import TestSupport
import Testing

@Suite struct EnqueueTests {
    @Test(arguments: ["read committed", "repeatable read", "serializable"])
    func `a rolled back enqueue leaves nothing, a committed one a job`(level: String) async throws {
        try await withConnection { connection in
            for (end, count) in [("rollback", 0), ("commit", 2)] {
                try await connection.run("begin isolation level \(level)")
                try await connection.enqueue("'test', unique_key => 'a'")
                try await connection.enqueue("'later', run_at => now() + interval '1 day'")
                try await connection.run(end)
                #expect(try await connection.int("select count(*) from millrace.job") == count)
                #expect(try await connection.int("select count(*) from millrace.ready") == count / 2)
                #expect(try await connection.int("select count(*) from millrace.timer") == count / 2)
                #expect(try await connection.int("select count(*) from millrace.unique_lock") == count / 2)
            }
        }
    }

    @Test func `every parameter is kept`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue(
                """
                'mail.send', '{"n": 1}', 'mail', 7, '2100-01-01', 'key', 'error', 'limit', 'acme', 5, '{a,b}', '{"trace": 1}',
                '{"timeout": 3, "unique_scope": "queue", "expires_at": "2100-01-02T00:00:00Z", "backoff": {"base": 2, "cap": 60}, "wake": false}'
                """)
            let row = try await connection.records(
                """
                select kind, queue, state, priority, args, run_at = '2100-01-01', attempt, max_attempts, crashes, unique_key,
                       limit_key, tenant, tags, metadata, errors from millrace.job(\(id))
                """)
            #expect(
                row == [
                    #"(mail.send,mail,scheduled,7,"{""n"": 1}",t,0,5,0,key,limit,acme,"{a,b}","{""trace"": 1}",[])"#
                ])
        }
    }

    static let refusals: [(call: String, code: String, field: String)] = [
        ("'test', priority => -1", "22023", "priority"), ("'test', priority => 10", "22023", "priority"),
        ("'test', max_attempts => 0", "22023", "max_attempts"),
        ("'test', max_attempts => 1001", "22023", "max_attempts"), ("'test', null", "22023", "args"),
        ("'test', to_jsonb(repeat('x', 1048577))", "53400", "args"),
        ("'test', metadata => jsonb_build_object('x', repeat('x', 65537))", "53400", "metadata"),
        ("'test', metadata => '[]'", "22023", "metadata"),
        ("'test', tags => array_fill('x'::text, array[33])", "22023", "tags"),
        ("'test', limit_key => ''", "22023", "limit_key"),
        ("'test', limit_key => repeat('x', 513)", "22023", "limit_key"),
        ("'test', tenant => ''", "22023", "tenant"), ("'test', tenant => repeat('x', 129)", "22023", "tenant"),
        ("'test', unique_key => ''", "22023", "unique_key"),
        ("'test', unique_key => repeat('x', 513)", "22023", "unique_key"),
        ("'test', on_conflict => 'maybe'", "22023", "on_conflict"),
        ("'test', on_conflict => null", "22023", "on_conflict"),
        ("'test', run_at => 'infinity'", "22023", "run_at"), ("'test', run_at => '-infinity'", "22023", "run_at"),
        ("'te st'", "22023", "kind"), ("''", "22023", "kind"), ("null", "22023", "kind"),
        ("repeat('x', 129)", "22023", "kind"),
        ("'test', queue => ''", "22023", "queue"), ("'test', queue => 'a:b'", "22023", "queue"),
        ("'test', queue => '-a'", "22023", "queue"), ("'test', options => '[]'", "22023", "options"),
        ("'test', options => '{\"nonsense\": 1}'", "22023", "options"),
        ("'test', options => '{\"timeout\": 0}'", "22023", "options.timeout"),
        ("'test', options => '{\"timeout\": 604801}'", "22023", "options.timeout"),
        ("'test', options => '{\"timeout\": \"1\"}'", "22023", "options.timeout"),
        ("'test', options => '{\"expires_at\": \"soon\"}'", "22023", "options.expires_at"),
        ("'test', options => '{\"unique_scope\": \"world\"}'", "22023", "options.unique_scope"),
        ("'test', options => '{\"unique_scope\": null}'", "22023", "options.unique_scope"),
        ("'test', options => '{\"backoff\": 1}'", "22023", "options.backoff"),
        ("'test', options => '{\"backoff\": {\"base\": 1e30}}'", "22023", "options.backoff"),
        ("'test', options => '{\"backoff\": {\"cap\": \"x\"}}'", "22023", "options.backoff"),
        ("'test', options => '{\"backoff\": {\"bass\": 1}}'", "22023", "options.backoff"),
        ("'test', options => '{\"wake\": 1}'", "22023", "options.wake"),
        ("'test', unique_key => 'k', options => '{\"unique_for\": 0}'", "22023", "options.unique_for"),
        ("'test', unique_key => 'k', options => '{\"unique_for\": 31536001}'", "22023", "options.unique_for"),
        ("'test', unique_key => 'k', options => '{\"unique_for\": \"1\"}'", "22023", "options.unique_for"),
        ("'test', options => '{\"unique_for\": 1}'", "22023", "options.unique_for"),
        ("'test', options => '{\"after\": 1}'", "22023", "options.after"),
        ("'test', options => '{\"fence\": 1}'", "22023", "options.fence"),
    ]

    @Test func `what makes no sense is refused, with its code, its field and nothing written`() async throws {
        try await withConnection { connection in
            for (call, code, field) in Self.refusals {
                let error = try await connection.refusal(of: "select millrace.enqueue(\(call))")
                #expect(error?.sqlState == code, "\(call): \(error?.message ?? "not refused")")
                #expect(error?.detail?.contains("\"field\" : \"\(field)\"") == true, "\(call): \(error?.detail ?? "-")")
            }
            #expect(try await connection.int("select count(*) from millrace.job") == 0)
            #expect(try await connection.refusal(of: "select millrace.enqueue('t', '{')")?.sqlState == "22P02")
            let hint = try await connection.refusal(of: "select millrace.enqueue('t', priority => 10)")?.hint
            #expect(hint == "Give 0 (first) to 9 (last); 4 is the default.")
        }
    }

    @Test func `a held key skips or refuses, in its own scope only`() async throws {
        try await withConnection { connection in
            let first = try await connection.enqueue("'test', unique_key => 'k'")
            #expect(try await connection.enqueue("'test', unique_key => 'k'") == first)
            let error = try await connection.refusal(
                of: "select millrace.enqueue('test', unique_key => 'k', on_conflict => 'error')")
            #expect(error?.sqlState == "23505" && error?.message.contains("job \(first)") == true)
            #expect(error?.detail?.contains("conflict") == true)
            #expect(try await connection.enqueue("'other', unique_key => 'k'") != first)
            for scope in ["queue", "tenant", "all"] {
                let id = try await connection.enqueue(
                    "'test', unique_key => 'k', options => '{\"unique_scope\": \"\(scope)\"}'")
                #expect(id != first)
                #expect(
                    try await connection.enqueue(
                        "'other', unique_key => 'k', options => '{\"unique_scope\": \"\(scope)\"}'") == id)
            }
            #expect(try await connection.int("select count(*) from millrace.job") == 5)
        }
    }

    @Test func `a key that another transaction is taking is waited for`() async throws {
        try await withDatabase { database in
            let one = try await database.connect()
            let two = try await database.connect()
            let watcher = try await database.connect()
            try await one.run("begin")
            _ = try await one.enqueue("'test', unique_key => 'k'")
            let process = try await two.process()
            let second = Task { try await two.enqueue("'test', unique_key => 'k'") }
            try await waitUntilBlocked(process, seenBy: watcher)
            try await one.run("rollback")
            let id = try await second.value
            #expect(try await watcher.column("select id from millrace.job") == ["\(id)"])
        }
    }

    @Test func `many are answered in order, and all or none is written`() async throws {
        try await withConnection { connection in
            let held = try await connection.enqueue("'a', unique_key => 'k'")
            let answer = try await connection.records(
                """
                select id = \(held), created from millrace.enqueue_many('[{"kind": "z", "unique_key": "z"},
                    {"kind": "a", "unique_key": "k"}, {"kind": "b", "args": [1]}, {"kind": "a", "unique_key": "b"}]')
                """)
            #expect(answer == ["(f,t)", "(t,f)", "(f,t)", "(f,t)"])
            let bad = try await connection.refusal(
                of: #"select * from millrace.enqueue_many('[{"kind": "new"}, {"kind": "b", "priority": 99}]')"#)
            #expect(bad?.message == "job 2: priority 99 is out of range" && bad?.sqlState == "22023")
            #expect(try await connection.int("select count(*) from millrace.job") == 4)
            for (jobs, code) in [
                ("{}", "22023"), ("[1]", "22023"), ("[{}]", "22023"), (#"[{"kind": "a", "nonsense": 1}]"#, "22023"),
                (#"[{"kind": "a", "priority": "x"}]"#, "22P02"), (#"[{"kind": "a", "run_at": "x"}]"#, "22007"),
            ] {
                #expect(
                    try await connection.refusal(of: "select * from millrace.enqueue_many('\(jobs)')")?.sqlState == code
                )
            }
            #expect(try await connection.int("select count(*) from millrace.enqueue_many('[]')") == 0)
        }
    }

    /// Two callers take the same two locks; the key and the kind of their jobs say nothing of the order in which.
    @Test func `concurrent callers with the same keys never deadlock`() async throws {
        try await withDatabase { database in
            func job(_ kind: String, _ scope: String, _ queue: String = "q") -> String {
                #"{"kind": "\#(kind)", "queue": "\#(queue)", "unique_key": "k", "options": {"unique_scope": "\#(scope)"}}"#
            }
            let calls = [
                [job("a", "all"), job("b", "queue")], [job("a", "queue"), job("b", "all")],
                [job("b", "queue", "p"), job("a", "queue")], [job("a", "queue", "p"), job("b", "queue")],
            ]
            let setup = try await database.connect()
            try await setup.run(
                "select millrace.enqueue(k, queue => q) from unnest(array['a', 'b']) k, unnest(array['p', 'q']) q")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for call in calls {
                    let connection = try await database.connect()
                    group.addTask {
                        for _ in 0..<60 {
                            try await connection.run("begin")
                            try await connection.execute(
                                "select * from millrace.enqueue_many($1)", [.json("[\(call.joined(separator: ","))]")])
                            try await connection.run("rollback")
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test func `a COPY of many lines is all or nothing, and an error names its line`() async throws {
        try await withConnection { connection in
            func copy(_ count: Int, bad: Int? = nil) async throws -> Int {
                let line = Mutex(0)
                return try await Queue.enqueueCopied(on: connection, deadline: .seconds(60)) {
                    let n = line.withLock { line in
                        line += 1
                        return line
                    }
                    if n > count { return nil }
                    let text = n == bad ? #"{"kind": "a b"}"# : #"{"kind": "test", "args": {"t": "a\tb\\n"}}"#
                    return (n, Array(text.utf8))
                }
            }
            #expect(try await copy(5000) == 5000)
            #expect(
                try await connection.int(#"select count(*) from millrace.job where args = '{"t": "a\tb\\n"}'"#) == 5000)
            let error = try await failure { _ = try await copy(5000, bad: 4321) }
            #expect(error?.description.contains("line 4321: the kind") == true)
            #expect(try await connection.int("select count(*) from millrace.job") == 5000)
            #expect(try await copy(0) == 0)
        }
    }

    @Test func `a bulk of one kind is checked like any other`() async throws {
        try await withConnection { connection in
            let range = try await Queue.enqueueBulk(
                kind: "test", args: (0..<1000).map { Array("{\"n\": \($0)}".utf8) }, queue: "bulk", priority: 2,
                on: connection)
            #expect(range?.count == 1000)
            #expect(
                try await connection.int(
                    "select count(*) from millrace.jobs where state = 'ready' and queue = 'bulk' and priority = 2")
                    == 1000)
            let bad = try await failure {
                _ = try await Queue.enqueueBulk(kind: "te st", args: [Array("{}".utf8)], on: connection)
            }
            #expect(bad?.sqlState == "22023")
            #expect(try await Queue.enqueueBulk(kind: "test", args: [], on: connection) == nil)
        }
    }
}
