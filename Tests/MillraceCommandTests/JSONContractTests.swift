import Foundation
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// `deploy/guides/json.md` says which fields a verb prints, and of which type; programs rely on it.
@Suite struct JSONContractTests {
    struct Row {
        let line: String
        let fields: String

        var words: [String] { JSONContractTests.words(of: line) }
    }

    /// The rows of the table below a heading: a command line, and what stands beside it.
    static func rows(below heading: String) throws -> [Row] {
        let page = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../deploy/guides/json.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let start = try #require(text.range(of: "\n## \(heading)\n"), "json.md has no heading \(heading)").upperBound
        let section = text[start...].prefix(upTo: text[start...].range(of: "\n## ")?.lowerBound ?? text.endIndex)
        return section.split(separator: "\n").filter { $0.hasPrefix("| `") }.map { row in
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            return Row(line: cells[0].replacing("`", with: ""), fields: cells.count > 1 ? cells[1] : "")
        }
    }

    /// As a shell splits them: what stands between single quotes is one.
    static func words(of line: String) -> [String] {
        line.split(separator: "'", omittingEmptySubsequences: false).enumerated().flatMap { index, part in
            index % 2 == 1 ? [String(part)] : part.split(separator: " ").map(String.init)
        }
    }

    /// What stands for a name on the page, and the statement that finds one.
    private static let placeholders = [
        "<job>": "select id from millrace.jobs where kind = 'mail.welcome'",
        "<waiting>": "select id from millrace.jobs where kind = 'demo.hello' and state <> 'cancelled'",
        "<dead>": "select id from millrace.jobs where state = 'dead' limit 1",
        "<cancelled>": "select id from millrace.jobs where state = 'cancelled' limit 1",
        "<event>": "select id from millrace.events order by 1 limit 1",
        "<mail>": "select id from millrace.mail_messages where template is null order by created_at desc limit 1",
        "<webhook>": "select id from millrace.webhooks order by 1 limit 1",
        "<media>": "select id from millrace.media limit 1",
        "<document>": "select id from millrace.documents order by 1 limit 1",
        "<approval>":
            "select millrace.approval_ask((select min(id) from millrace.job), 'refund', '{\"request\": {\"amount\": 7}}', null, 'x', now())",
        "<alarm>": "select id from millrace.alarms order by raised_at desc limit 1",
        "<notice>": "select id from millrace.notices where kind = 'note' order by 1 limit 1",
        "<thread>": "select id from millrace.chat_thread limit 1",
        "<message>": "select id from millrace.chat_message limit 1",
        "<subscription>": "select id from millrace.subscription where plan = 'pro' limit 1",
        "<blob>": "select encode(id, 'hex') from millrace.blob order by 1 limit 1",
    ]

    /// What happens between two lines, so that the next has something to act on.
    private static let meanwhile = [
        "mail resolve": "update millrace.mail set status = 'parked'",
        "status --at": """
        insert into millrace.queue (name) values ('past') on conflict do nothing;
        select millrace.session_open(77, 'past', 'host', 1, '1', null, '{}', 1, false), millrace.session_open(78, 'past', 'host', 1, '2', null, '{}', 1, false);
        insert into millrace.tally (at, session, queue, kind, succeeded, failed, ms, times)
        select now() - interval '5 s', s, (select id from millrace.queue where name = 'past' limit 1), (select min(id) from millrace.kind), 5, 5, 100, '3:10'
          from unnest('{77,78}'::bigint[]) s;
        update millrace.process set started_at = started_at - interval '1 minute' where session = 77;
        select millrace.enqueue('late', queue => 'past'), millrace.provider_force('resend', 'observe', 'test');
        delete from millrace.sample_fresh;
        select millrace.sample_take()
        """,
        "versions list": """
        select millrace.session_close(77), millrace.session_close(78);
        select millrace.session_open(s, 'pinned', 'host', 1, '1+' || b, null, array[(select min(id) from millrace.kind)], 1, false, null, b)
          from (values (79, '7f3a'), (80, '81c2')) x(s, b)
        """,
        "media show": """
        insert into millrace.media_file select id, 'thumbnail', blob, 7, 'image/jpeg', 32, 24 from millrace.media;
        update millrace.media set status = 'done', mime_type = 'image/png', ended_at = now();
        select millrace.link_key_set(sha256('k'), 'https://x.example')
        """,
        "documents retry": "update millrace.document set status = 'failed', stage = 'failed', reason = 'unreadable'",
    ]

    private static let beforehand = #"""
        select millrace.enqueue('mail.send', queue => 'mail');
        delete from millrace.ready;
        insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
        select id, 0, id, now(), now(), kind, queue, 1, 3, 1, 0, 'refused' from millrace.job;
        select millrace.enqueue('mail.welcome', queue => 'mail', tags => '{a}', limit_key => 'k');
        select millrace.pause('empty');
        select millrace.gateway_beat('host:1', '127.0.0.1:8490', 3, 20, '1.0');
        select millrace.provider_force('resend', 'observe', 'test');
        select millrace.flag_set('new-sender', 5);
        select millrace.schedule_set('nightly', '0 2 * * *', 'mail.send');
        select millrace.session_open(7, 'w', 'h', 1, '1.0', null, '{}', 1, false),
            millrace.beat(7, 'working', 0, 0, 0, the_failures => (select jsonb_build_array(jsonb_build_object('queue', queue, 'kind', kind,
                'error', 'refused', 'failed', 1, 'dead', 1, 'jobs', jsonb_build_array(id), 'lo', id, 'hi', id)) from millrace.history limit 1)),
            millrace.session_close(7);
        select millrace.device_add('anna', 'fcm', repeat('a', 40), actor => 'anna');
        select millrace.check_in_contact('anna', 'mum', 1, '{"mail": "mum@example.com"}', actor => 'anna'), millrace.check_in_confirm('anna', 'mum')
        """#

    @Test func `each line on the page prints the fields that stand there, of these types, and no others`() async throws
    {
        try await withDatabase { database in
            try await Self.walk(database, as: database.url) { row, code, capture in
                // Nobody answers at the webhook that is tested; all else succeeds, or is a verdict.
                let codes: [ExitCode] =
                    row.line.hasPrefix("webhooks test") ? [.failed] : [.done, .degraded, .critical, .jobDied]
                #expect(codes.contains(code), "\(row.line): \(capture.errors)")
                guard let value = try? JSONValue.read(capture.output), case .object(let members) = value else {
                    Issue.record("\(row.line) prints no object: \(capture.output.prefix(300))")
                    return
                }
                let shape = JSONShape.fields(try JSONShape.fields(in: row.fields))
                let said = JSONValue.object(members.filter { $0.key != "version" })
                let problems = shape.problems(with: said, at: "it")
                guard case .fields(let printed) = JSONShape(of: said) else { return }
                #expect(problems == [], "| `\(row.line)` | \(JSONShape.spell(printed)) |")
                #expect(row.words.starts(with: ["events", "tail"]) || value["version"]?.integer == 1, "\(row.line)")
            }
        }
    }

    /// Runs each line on the page, in a database that has something for it to act on.
    /// - Parameter url: where the verbs connect, and as whom.
    static func walk(
        _ database: TestDatabase, as url: String, _ check: (Row, ExitCode, Capture) async throws -> Void
    ) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "millrace-json-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let template = folder.appending(path: "mails/welcome/en")
        try FileManager.default.createDirectory(at: template, withIntermediateDirectories: true)
        for (name, text) in ["subject.txt": "Hello {{name}}", "body.html": "<p>{{name}}</p>", "body.txt": "{{name}}"] {
            try text.write(to: template.appending(path: name), atomically: true, encoding: .utf8)
        }
        try #"{"name": {"required": true}}"#.write(
            to: template.appending(path: "variables.json"), atomically: true, encoding: .utf8)
        let file = folder.appending(path: "hello.txt").path
        try "hello".write(toFile: file, atomically: true, encoding: .utf8)
        let connection = try await database.connect()
        try await connection.run(beforehand)
        for row in try rows(below: "Fields") {
            for (verb, script) in meanwhile where row.line.hasPrefix(verb) { try await connection.run(script) }
            var words: [String] = []
            for word in row.words {
                if let find = placeholders[word] {
                    guard let found = try await connection.value(find) else {
                        Issue.record("\(row.line): there is no \(word)")
                        continue
                    }
                    words.append(found)
                } else {
                    words.append(
                        word.replacing("<file>", with: file).replacing("<folder>", with: "\(folder.path)/mails"))
                }
            }
            let capture = Capture()
            let code = await Application.run(
                arguments: words + ["--json", "--yes", "--database-url", url],
                surroundings: .fake(
                    [
                        "MILLRACE_ENCRYPTION_KEY": "00bdec81:iV6QTWA7LXfNaNJ6Vzthcsbz/4BJCQzVPOAozaMHig0=",
                        "MILLRACE_PUBLIC_URL": "https://x.example", "MILLRACE_SECRET": "a secret of ours",
                    ],
                    files: ["hello.txt": "hello", "/here/hello.txt": "hello", file: "hello"]),
                console: capture.console)
            try await check(row, code, capture)
        }
        await connection.close()
    }

    @Test func `every verb stands on the page`() throws {
        let rows = try Self.rows(below: "Fields") + Self.rows(below: "Verbs without these objects")
        let tree = Verbs.tree
        let lines = rows.map(\.words)
        for command in tree.commands {
            #expect(
                lines.contains { $0.starts(with: command.path) || $0 == [command.path[0], "*"] },
                "\(command.name) has no row in deploy/guides/json.md")
        }
        for words in lines {
            #expect(
                words.last == "*" && tree.leadsSomewhere([words[0]])
                    || tree.commands.contains { words.starts(with: $0.path) },
                "\(words) on the page is no verb")
        }
    }

    @Test func `a wrong type, a missing field and an unknown one are found`() throws {
        let shape = JSONShape.fields(
            try JSONShape.fields(in: "id int, jobs list of (kind text, n number), more object"))
        func problems(_ json: String) throws -> [String] {
            shape.problems(with: try JSONValue.read(json), at: "it")
        }
        #expect(try problems(#"{"id": 1, "jobs": [{"kind": "a", "n": 1.5}], "more": {"x": 1}}"#) == [])
        #expect(try problems(#"{"id": null, "jobs": [{"kind": null, "n": 1}], "more": {}}"#) == [])
        #expect(
            try problems(#"{"id": "1", "jobs": [{"kind": "a"}], "extra": 1, "more": []}"#) == [
                "it.extra is not in the guide", "it.id is not int but text", "it.jobs[0].n is missing",
                "it.more is not object but list",
            ])
        #expect(try problems(#"{"id": 1, "jobs": []}"#) == ["it.more is missing", "it.jobs has no entry to compare"])
    }
}
