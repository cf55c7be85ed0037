package import CommandKit
import LoadKit
import Postgres
import Telemetry
import Workers

extension Command {
    package static let loadChat = scenario(
        "chat",
        summary: "Send messages at a steady rate, and see when each reaches everybody in its thread",
        discussion: """
            Starts a Postgres and a gateway of its own, makes families with a thread each, opens a stream for every member, and sends \
            messages: an open loop, so a message that comes late counts from when it was due. Every tenth call marks a thread as read. \
            It prints the time from when a message was due until its arrival at each member, for all and for each minute. In the end \
            every member must have seen what the database has for it, once and in order, and the count of unread messages of every \
            member must be what a count over the messages gives. No worker runs, so no pushes are sent. Needs two file \
            descriptors for each member.
            """,
        flags: [
            .count("rate", 1...100_000, 200, "Messages a second."),
            .count("seconds", 1...3600, 30, "For how long."),
            .count("families", 1...100_000, 20, "Families, with a thread each."),
            .count("people", 2...200, 50, "Members of each family."),
            .count("callers", 1...100, 16, "Connections that send."),
        ],
        examples: [
            Example("millrace load chat", "20 threads of 50 people, 200 messages a second"),
            Example("millrace load chat --seconds 600 --strict", "the same for ten minutes"),
            Example("millrace load chat --families 300 --people 3 --rate 1000", "many small threads"),
        ]
    ) { invocation in
        try await ChatScenario(invocation: invocation).run()
    }
}

private struct ChatScenario: Sendable {
    let invocation: Invocation

    private var rate: Int { invocation.count("rate") }
    private var seconds: Int { invocation.count("seconds") }
    private var families: Int { invocation.count("families") }
    private var people: Int { invocation.count("people") }
    private var callers: Int { invocation.count("callers") }
    private var streams: Int { families * people }

    func run() async throws -> ExitCode {
        guard streams <= 14_000 else { throw Failure("\(streams) members are more than the 14000 streams of one run") }
        return try await measure(try await StreamWorld.opened(invocation, hasProxy: false))
    }

    private func measure(_ world: StreamWorld) async throws -> ExitCode {
        let live = invocation.console.live()
        let connection = try await Connection.open(world.options, name: "load")
        live.update(["making \(Humane.count(families)) families of \(people)"])
        try await fill(on: connection)
        // Each connection plans its statements once before it is timed.
        let warmUp = try await Pacer.open(world.options, callers: callers)
        _ = try await warmUp.run(Cadence(began: PracticeMarks.now(), perSecond: 200, calls: callers * 20)) {
            try await send($0, due: PracticeMarks.now(), on: $1)
        }
        let before = try await count("select count(*) from millrace.chat_message", on: connection)
        let fleet = StreamFleet(port: world.port, time: Self.time) { world.token($0) }
        fleet.start(streams, threads: 1)
        try await fleet.opened(streams, live, within: .seconds(120))
        let pacer = try await Pacer.open(world.options, callers: callers)
        let cadence = Cadence(
            began: PracticeMarks.now() + 200_000_000, perSecond: Double(rate) * 10 / 9, calls: rate * seconds * 10 / 9)
        let showing = Task {
            while !Task.isCancelled {
                let gone = Double(max(0, PracticeMarks.now() - cadence.began)) / 1e9
                live.update(["\(Int(gone)) of \(seconds) s: \(Humane.count(fleet.counts.events)) arrivals"])
                try? await Task.sleep(for: .seconds(1))
            }
        }
        defer { showing.cancel() }
        let outcome = try await pacer.run(cadence) { try await send($0, due: cadence.due($0), on: $1) }
        let took = Double(outcome.ended - cadence.began) / 1e9
        showing.cancel()
        live.update(["waiting for the last arrivals"])
        let sent = try await count("select count(*) from millrace.chat_message", on: connection) - before
        let rows = try await changes(on: connection)
        let deadline = ContinuousClock.now + .seconds(120)
        var last = (arrivals: -1, since: ContinuousClock.now)
        while ContinuousClock.now < deadline, last.since + .seconds(3) > .now {
            let arrivals = fleet.counts.events
            if arrivals != last.arrivals { last = (arrivals, .now) }
            try await Task.sleep(for: .milliseconds(100))
        }
        let results = try await fleet.stop()
        let missed = judge(results.seen, rows)
        let wrong = try await count(
            """
            select count(*) from millrace.chat_member m join millrace.chat_thread t on t.id = m.thread
             where millrace.chat_unread_of(m, t.last_n) <> millrace.chat_unread_counted(m.thread, m.person)
            """, on: connection)
        let bytes = try await count("select pg_total_relation_size('millrace.chat_message')", on: connection)
        let stored = try await count("select count(*) from millrace.feed where thread is not null", on: connection)
        await connection.close()
        live.update([])
        let minutes = results.minutes.sorted { $0.key < $1.key }.map(\.value)
        // A minute that is begun or ended in the middle has few.
        let whole = minutes.filter { Double($0.count) >= Double(rate * people) * 30 }
        invocation.console.print("chat_send and chat_read: \(outcome.answered.summary)")
        invocation.console.print("due to arrival: \(results.all.summary)")
        for (number, minute) in whole.enumerated() where whole.count > 1 {
            invocation.console.print("minute \(number + 1): \(minute.summary)")
        }
        let slowest = (whole.isEmpty ? [results.all] : whole).map { $0.milliseconds(at: 0.99) }.max() ?? 0
        return invocation.report(
            "chat",
            [
                .atLeast("messages", Double(rate) * 0.99, measured: Double(sent) / took, unit: "/s"),
                .atMost("due → stored, p99", 100, measured: outcome.answered.milliseconds(at: 0.99), unit: "ms"),
                .atMost(
                    "due → there for each member, p99", 250, measured: results.all.milliseconds(at: 0.99), unit: "ms"),
                .atMost("the same in the slowest minute", 250, measured: slowest, unit: "ms"),
                .atMost(
                    "members that missed a change, or had one twice or out of order", 0, measured: Double(missed),
                    unit: ""),
                .atMost("members whose unread count is wrong", 0, measured: Double(wrong), unit: ""),
            ],
            figures: [
                ("families", .int(families)), ("people", .int(people)), ("messages", .int(sent)),
                ("seconds", .double(took)), ("answered", outcome.answered.json), ("behind", outcome.behind.json),
                ("arrived", results.all.json), ("minutes", .array(whole.map(\.json))), ("bytes", .int(bytes)),
                ("feed_rows", .int(stored)),
            ])
    }

    /// Member n of all is person-n; the members of a family follow each other.
    private func fill(on connection: Connection) async throws {
        try await connection.execute(
            "select millrace.chat_rules_set('{\"day\": 999999}'), count(millrace.family_create('chat-' || n, 'UTC')) from generate_series(1, $1) n",
            [.int4(Int32(families))])
        try await connection.execute(
            """
            select count(millrace.family_join('chat-' || (p / $1 + 1), 'person-' || p, case when p % $1 = 0 then 'parent' else 'teen' end))
              from generate_series(0, $2 - 1) p
            """, [.int4(Int32(people)), .int4(Int32(streams))], deadline: .seconds(120))
        try await connection.execute(
            """
            select count(millrace.chat_thread_create(actor => 'person-' || (n - 1) * $2, id => md5('chat-' || n)::uuid)) from generate_series(1, $1) n
            """, [.int4(Int32(families)), .int4(Int32(people))], deadline: .seconds(120))
        try await connection.execute("analyze millrace.chat_thread, millrace.chat_member")
    }

    /// The id of a message says when it was due.
    private func send(_ n: Int, due: Int64, on connection: Connection) async throws {
        let family = n % families
        let person = "person-\(family * people + n / families % people)"
        if n % 10 == 9 {
            try await connection.execute(
                """
                select millrace.chat_read(t.id, (select m.id from millrace.chat_message m where m.thread = t.id order by m.n desc limit 1), $2)
                  from (select md5('chat-' || $1)::uuid as id) t where exists (select from millrace.chat_message m where m.thread = t.id)
                """, [.text("\(family + 1)"), .text(person)])
        } else {
            try await connection.execute(
                "select millrace.chat_send(md5('chat-' || $1)::uuid, $3, id => ($4::text)::uuid, actor => $2)",
                [
                    .text("\(family + 1)"), .text(person),
                    .text("Number \(n): the ferry leaves at nine, and somebody should bring the blue umbrella."),
                    .text(Self.hex(due) + Self.hex(.random(in: 0...Int64.max))),
                ])
        }
    }

    private static func hex(_ number: Int64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Of a message: when it was due.
    @Sendable private static func time(_ data: UnsafeBufferPointer<UInt8>) -> Int64? {
        guard data.place(of: "\"change\":\"message\"") != nil, let at = data.place(of: "\"ref\":\"") else { return nil }
        let digits = data[(at + 7)...].prefix(18).filter { $0 != UInt8(ascii: "-") }
        return Int64(String(decoding: digits, as: UTF8.self), radix: 16)
    }

    /// A change of a thread, or of one person.
    private struct Change: Sendable {
        var seq: Int64
        var family: Int?
        var person: Int?
        /// Who hears of it by a row of its own.
        var but: Int?
    }

    private func changes(on connection: Connection) async throws -> [Change] {
        // Another reader may be numbering the last ones.
        while try await count("select count(*) from millrace.feed where seq is null", on: connection) > 0 {
            try await Task.sleep(for: .milliseconds(50))
        }
        return try await connection.query(
            """
            select f.seq, n.family, split_part(f.person, '-', 2)::int,
                   case when f.change not in ('message', 'deleted') then split_part(f.about, '-', 2)::int end
              from millrace.feed f left join (select md5('chat-' || n)::uuid as thread, n - 1 as family from generate_series(1, $1) n) n on n.thread = f.thread
             order by f.seq
            """, [.int4(Int32(families))], deadline: .seconds(120)
        ) { row throws(PostgresError) in
            Change(
                seq: try row.int(0), family: row.isNull(1) ? nil : Int(try row.int(1)),
                person: row.isNull(2) ? nil : Int(try row.int(2)), but: row.isNull(3) ? nil : Int(try row.int(3)))
        }
    }

    /// How many have not seen what they were to see.
    private func judge(_ seen: [StreamFleet.Seen], _ changes: [Change]) -> Int {
        var ofFamily: [Int: [Change]] = [:]
        var ofPerson: [Int: [Change]] = [:]
        for change in changes {
            if let family = change.family { ofFamily[family, default: []].append(change) }
            if let person = change.person { ofPerson[person, default: []].append(change) }
        }
        var missed = 0
        for one in seen {
            let start = one.start ?? .max
            let wanted =
                (ofFamily[one.person / people] ?? []).filter { $0.but != one.person && $0.seq > start }
                + (ofPerson[one.person] ?? []).filter { $0.seq > start }
            guard one.start == nil || one.seqs != wanted.map(\.seq).sorted() else { continue }
            missed += 1
            if missed <= 3 {
                let (has, had) = (Set(one.seqs), Set(wanted.map(\.seq)))
                invocation.console.print(
                    "person-\(one.person), from \(one.start ?? -1): lacks \(had.subtracting(has).count), has \(has.subtracting(had).count) too many, \(one.seqs.count - has.count) twice"
                )
            }
        }
        return missed
    }

    private func count(_ sql: StaticString, on connection: Connection) async throws -> Int {
        try await connection.int(.shipped(Array("\(sql)".utf8)))
    }
}
