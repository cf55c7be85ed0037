import Foundation
import Postgres
import TestSupport
import Testing

/// Two devices of one person and the phone of another send, read and delete at the same time, over a connection each. In the end the counts
/// are the fold over the events that the feed has told. `MILLRACE_RUNS` says how often, `MILLRACE_SEED` repeats a run.
@Suite struct ChatRaceTests {
    private static let runs = ProcessInfo.processInfo.environment["MILLRACE_RUNS"].flatMap { Int($0) } ?? 12
    private static let seed = ProcessInfo.processInfo.environment["MILLRACE_SEED"].flatMap { Int($0) } ?? 4711

    private enum Act: Sendable {
        case send(String), read(String), delete(String)

        func sql(_ thread: String, _ person: String) -> String {
            switch self {
            case .send(let id):
                "select millrace.chat_send('\(thread)', 'text of \(id)', id => '\(id)', actor => '\(person)')"
            case .read(let id): "select millrace.chat_read('\(thread)', '\(id)', '\(person)')"
            case .delete(let id): "select millrace.chat_delete('\(id)', '\(person)')"
            }
        }
    }

    /// What one device does. Its messages are those of its person, some of which its other device sends as well. Marks stand on some of them
    /// only, so that messages stay unread.
    private static func plan(_ own: [String], _ marked: [String], _ random: inout SeededRandom) -> [Act] {
        (0..<30).map { _ in
            random.pick([
                (.send(own[random.below(own.count)]), 5), (.read(marked[random.below(marked.count)]), 3),
                (.delete(own[random.below(own.count)]), 2),
            ])
        }
    }

    /// What has not been sent yet is not there; two that wait for each other are told so. Everything else is a mistake.
    private static func carryOut(_ plan: [Act], _ thread: String, _ person: String, on connection: Connection)
        async throws
    {
        for act in plan {
            let error = try await connection.refusal(of: act.sql(thread, person))
            #expect(error == nil || error?.sqlState == "P0002", "\(error?.message ?? "")")
        }
    }

    @Test func `unread is the fold over the events, however two devices race`() async throws {
        try await withDatabase { database in
            let owner = try await database.connect()
            try await owner.makeFamily()
            let devices = [try await database.connect(), try await database.connect(), try await database.connect()]
            let people = ["ben", "ben", "anna"]
            var left = 0
            for run in 0..<Self.runs {
                var random = SeededRandom(Self.seed + run)
                let since = try await owner.int("select newest from millrace.feed_position('anna')")
                let thread = try await owner.beginThread()
                var ids: [String: [String]] = [:]
                for person in ["ben", "anna"] { ids[person] = (0..<8).map { _ in Self.uuid(&random) } }
                let marked = ids.values.flatMap { $0.prefix(2) }.sorted()
                let plans = people.map { Self.plan(ids[$0] ?? [], marked, &random) }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for (device, (plan, person)) in zip(devices, zip(plans, people)) {
                        group.addTask { try await Self.carryOut(plan, thread, person, on: device) }
                    }
                    try await group.waitForAll()
                }
                let hint: Comment = "MILLRACE_SEED=\(Self.seed + run) MILLRACE_RUNS=1"
                for person in ["anna", "ben", "cleo"] {
                    let (unread, marks) = try await Self.fold(person, thread, since: since, on: owner)
                    #expect(try await owner.unread(person, in: thread) == unread, hint)
                    #expect(marks == marks.sorted(), hint)
                    left += person == "cleo" ? 0 : unread
                }
                #expect(try await owner.miscounted().isEmpty, hint)
                // Numbers without a gap, and each message once, though two devices have sent it.
                #expect(
                    try await owner.bool(
                        "select count(*) = coalesce(max(n), 0) and count(*) = count(distinct id) from millrace.chat_message where thread = '\(thread)'"
                    ),
                    hint)
            }
            #expect(left > 0, "something is unread in some of the runs")
            for device in devices + [owner] { await device.close() }
        }
    }

    /// From what the person was told alone: others' messages that are neither deleted nor behind its last mark; and its marks in their order.
    private static func fold(
        _ person: String, _ thread: String, since: Int, on connection: Connection
    ) async throws -> (unread: Int, marks: [Int]) {
        let events = try await connection.query(
            .pasted(
                """
                select change, ref, coalesce(data ->> 'sender', data ->> 'person', ''), data ->> 'n' from millrace.feed_mine(\(since), '{chat}', 500, '\(person)')
                 where data ->> 'thread' = '\(thread)' or ref = '\(thread)' order by seq
                """)
        ) { row throws(PostgresError) in
            (
                change: try row.string(0), ref: try row.string(1), who: try row.string(2),
                n: Int(row.optionalString(3) ?? "") ?? 0
            )
        }
        var others: [String: Int] = [:]
        var marks: [Int] = []
        for event in events {
            switch event.change {
            case "message" where event.who != person: others[event.ref] = event.n
            case "deleted": others[event.ref] = nil
            case "read" where event.who == person: marks.append(event.n)
            default: break
            }
        }
        return (others.values.count { $0 > (marks.max() ?? 0) }, marks)
    }

    @Test func `what an offline device hands in twice is there once`() async throws {
        try await withDatabase { database in
            let owner = try await database.connect()
            try await owner.makeFamily()
            let thread = try await owner.beginThread()
            var random = SeededRandom(Self.seed)
            let ids = (0..<20).map { _ in Self.uuid(&random) }
            let phones = [try await database.connect(), try await database.connect()]
            for phone in phones { try await phone.signIn("ben") }
            // Each device has its own names for what it does; the messages are the same.
            func push(_ device: String, _ random: inout SeededRandom) -> String {
                let ops = ids.shuffled(using: &random).map { id in
                    #"{"id": "\#(Self.uuid(&random))", "op": "chat_send", "at": "2026-01-01T00:00:00Z", "args": {"thread": "\#(thread)", "text": "\#(id)", "id": "\#(id)"}}"#
                }
                let json = "[\(ops.joined(separator: ", "))]".replacing(
                    "2026-01-01T00:00:00Z", with: Date.now.addingTimeInterval(-600).formatted(.iso8601))
                return "select outcome from millrace.sync_push('\(device)', '\(json)')"
            }
            let (first, second) = (push("phone", &random), push("tablet", &random))
            async let one = phones[0].column(first)
            async let two = phones[1].column(second)
            #expect(try await one + two == Array(repeating: "applied", count: 40))
            #expect(try await phones[0].column(first) == Array(repeating: "same", count: 20))
            #expect(try await owner.int("select count(*) from millrace.chat_message") == 20)
            #expect(try await owner.unread("anna", in: thread) == 20)
            #expect(
                try await owner.bool(
                    "select bool_and(at < received_at - interval '9 minutes') from millrace.chat_message"))
            let newest = try await owner.value("select id from millrace.chat_message order by n desc limit 1") ?? ""
            let later = """
                select outcome || ' ' || coalesce(result::text, class) from millrace.sync_push('phone', '[
                    {"id": "\(Self.uuid(&random))", "op": "chat_read", "args": {"thread": "\(thread)", "message": "\(newest)"}},
                    {"id": "\(Self.uuid(&random))", "op": "chat_delete", "args": {"id": "\(newest)"}},
                    {"id": "\(Self.uuid(&random))", "op": "chat_send", "args": {"thread": "\(thread)", "text": "other", "id": "\(newest)"}}]')
                """
            #expect(try await phones[0].column(later) == ["applied 0", "applied true", "refused conflict"])
            #expect(try await owner.unread("anna", in: thread) == 19)
            for connection in phones + [owner] { await connection.close() }
        }
    }

    @Test func `a message that crosses with the end of a contact or of a membership is not read any more`() async throws
    {
        try await withDatabase { database in
            let (one, two) = (try await database.connect(), try await database.connect())
            try await one.makeFamily()
            let thread = try await one.beginThread()
            try await one.run("begin")
            try await one.run("select millrace.family_leave('f', 'ben')")
            let process = try await two.process()
            async let sent = two.refusal(of: "select millrace.chat_send('\(thread)', 'late', actor => 'ben')")
            let watcher = try await database.connect()
            try await waitUntilBlocked(process, seenBy: watcher)
            try await one.run("commit")
            #expect(try await sent?.sqlState == "P0002")
            #expect(try await one.int("select count(*) from millrace.chat_message") == 0)
            for connection in [one, two, watcher] { await connection.close() }
        }
    }

    @Test func `a message that crosses with reading has its notice`() async throws {
        try await withDatabase { database in
            let (reader, writer) = (try await database.connect(), try await database.connect())
            try await reader.makeFamily()
            let thread = try await reader.beginThread()
            let first = try await writer.send("one", to: thread, by: "ben")
            let waiting = "select count(*) from millrace.notice where person = 'anna' and status = 'pending'"
            #expect(try await reader.int(waiting) == 1)
            try await reader.run("begin; select millrace.chat_read('\(thread)', '\(first)', 'anna')")
            let process = try await writer.process()
            async let sent = writer.send("two", to: thread, by: "ben")
            let watcher = try await database.connect()
            try await waitUntilBlocked(process, seenBy: watcher)
            try await reader.run("commit")
            _ = try await sent
            #expect(try await reader.int(waiting) == 1)
            #expect(try await reader.unread("anna", in: thread) == 1)
            for connection in [reader, writer, watcher] { await connection.close() }
        }
    }

    private static func uuid(_ random: inout SeededRandom) -> String {
        let digits = String(random.next(), radix: 16).leftPadded(16) + String(random.next(), radix: 16).leftPadded(16)
        return [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)].map { from, to in
            String(digits.dropFirst(from).prefix(to - from))
        }.joined(separator: "-")
    }
}

extension String {
    fileprivate func leftPadded(_ length: Int) -> String {
        String(repeating: "0", count: max(0, length - count)) + self
    }
}
