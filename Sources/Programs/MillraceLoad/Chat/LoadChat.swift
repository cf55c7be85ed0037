import MillraceCommand
import Postgres
import Telemetry
import Workers

extension Command {
    static let loadChat = Command(
        ["load", "chat"],
        summary: "Send messages at a steady rate, and compare how long each takes with the promise",
        discussion: """
            Makes families of three with a thread each, and sends messages in their turn: an open loop, so a message that \
            comes late counts from when it was due. Every tenth call marks a thread as read. In the end the count of unread \
            messages of every member must be what a count over the messages gives.
            """,
        flags: [
            .single(
                "rate", "N", .integer(1...100_000), environment: .none, fallback: "1000", help: "Messages a second."),
            .single("seconds", "N", .integer(1...3600), environment: .none, fallback: "30", help: "For how long."),
            .single(
                "families", "N", .integer(1...100_000), environment: .none, fallback: "300",
                help: "Families, with a thread each."),
            .single(
                "callers", "N", .integer(1...500), environment: .none, fallback: "16", help: "Connections that send."),
            .toggle("strict", environment: .none, help: "Exit 1 when a bar is missed."),
        ],
        examples: [Example("millrace load chat", "1,000 messages a second for half a minute")]
    ) { invocation in
        do {
            return try await ChatScenario(invocation: invocation).run()
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
    }
}

private struct ChatScenario: Sendable {
    let invocation: Invocation

    private func number(_ flag: String, _ fallback: Int) -> Int { invocation.parsed.integer(flag) ?? fallback }

    func run() async throws -> ExitCode {
        let (rate, seconds) = (number("rate", 1000), number("seconds", 30))
        let (families, callers) = (number("families", 300), number("callers", 16))
        let options = try invocation.connectionOptions()
        let connection = try await Connection.open(options, name: "load")
        try await SchemaCheck.check(on: connection)
        try await fill(families, on: connection)
        // Each connection plans its statements once before it is timed.
        let warmUp = try await Pacer.open(options, callers: callers)
        _ = try await warmUp.run(Cadence(began: PracticeMarks.now(), perSecond: 200, calls: callers * 20)) {
            try await Self.call($0, of: families, on: $1)
        }
        let before = try await count("select count(*) from millrace.chat_message", on: connection)
        let pacer = try await Pacer.open(options, callers: callers)
        let calls = rate * seconds * 10 / 9
        let cadence = Cadence(
            began: PracticeMarks.now() + 200_000_000, perSecond: Double(rate) * 10 / 9, calls: calls)
        let outcome = try await pacer.run(cadence) { try await Self.call($0, of: families, on: $1) }
        let sent = try await count("select count(*) from millrace.chat_message", on: connection) - before
        let took = Double(outcome.ended - cadence.began) / 1e9
        let wrong = try await count(
            """
            select count(*) from millrace.chat_member m where m.unread <> millrace.chat_unread_counted(m.thread, m.person)
            """, on: connection)
        let bytes = try await count("select pg_total_relation_size('millrace.chat_message')", on: connection)
        await connection.close()
        invocation.console.note("chat_send and chat_read: \(outcome.answered.summary)")
        return invocation.report(
            "chat",
            [
                .atLeast("messages", Double(rate) * 0.99, measured: Double(sent) / took, unit: "/s"),
                .atMost("due → stored, p99", 100, measured: outcome.answered.milliseconds(at: 0.99), unit: "ms"),
                .atMost("members whose unread count is wrong", 0, measured: Double(wrong), unit: ""),
            ],
            figures: [
                ("messages", .int(sent)), ("seconds", .double(took)), ("answered", outcome.answered.json),
                ("behind", outcome.behind.json), ("bytes", .int(bytes)),
            ])
    }

    /// The people of family n are n-a, n-b and n-c.
    private func fill(_ families: Int, on connection: Connection) async throws {
        try await connection.execute(
            "select millrace.chat_rules_set('{\"day\": 999999}'), count(millrace.family_create('chat-' || n, 'UTC')) from generate_series(1, $1) n",
            [.int4(Int32(families))])
        try await connection.execute(
            """
            select count(millrace.family_join('chat-' || n, n || '-' || p, case p when 'a' then 'parent' else 'teen' end))
              from generate_series(1, $1) n, unnest(array['a', 'b', 'c']) p
            """, [.int4(Int32(families))], deadline: .seconds(120))
        try await connection.execute(
            """
            select count(millrace.chat_thread_create(actor => n || '-a', id => md5('chat-' || n)::uuid)) from generate_series(1, $1) n
            """, [.int4(Int32(families))], deadline: .seconds(120))
        try await connection.execute("analyze millrace.chat_thread, millrace.chat_member")
    }

    private static func call(_ n: Int, of families: Int, on connection: Connection) async throws {
        let family = n % families + 1
        let person = "\(family)-\(["a", "b", "c"][n / families % 3])"
        if n % 10 == 9 {
            try await connection.execute(
                """
                select millrace.chat_read(t.id, (select m.id from millrace.chat_message m where m.thread = t.id order by m.n desc limit 1), $2)
                  from (select md5('chat-' || $1)::uuid as id) t where exists (select from millrace.chat_message m where m.thread = t.id)
                """, [.text("\(family)"), .text(person)])
        } else {
            try await connection.execute(
                "select millrace.chat_send(md5('chat-' || $1)::uuid, $3, id => gen_random_uuid(), actor => $2)",
                [
                    .text("\(family)"), .text(person),
                    .text("Number \(n): the ferry leaves at nine, and somebody should bring the blue umbrella."),
                ])
        }
    }

    private func count(_ sql: StaticString, on connection: Connection) async throws -> Int {
        try await connection.query(.shipped(Array("\(sql)".utf8))) { row throws(PostgresError) in Int(try row.int(0)) }
            .first ?? 0
    }
}
