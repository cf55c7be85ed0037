import Foundation
import MillraceWorker
import Postgres
import TestSupport
import Testing

/// Jobs of the kind `template.render`.
@Suite struct TemplateJobTests {
    /// The programs for documents, which the tests build.
    private static let children: String = {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return ProcessInfo.processInfo.environment["MILLRACE_CHILDREN"]
            ?? root.appendingPathComponent(".build/debug").path
    }()

    private static func withWorker(
        _ rooms: Set<CompleteWorker.Room> = [.mail], _ body: (Connection) async throws -> Void
    ) async throws {
        try await withDatabase { database in
            var options = CompleteWorker.Options(settings: [
                "MILLRACE_MAIL_OUTBOX": "/tmp/never", "MILLRACE_CHILDREN": children, "MILLRACE_BLOBS": "postgres",
            ])
            options.readsEnvironment = false
            options.database = .url(database.url)
            options.listen = "off"
            options.slots = 4
            options.rooms = rooms
            options.log = .silent
            let worker = try CompleteWorker(options)
            let running = Task { try await worker.run(handlesSignals: false) }
            let connection = try await database.connect()
            let outcome: Result<Void, any Error>
            do {
                outcome = .success(try await body(connection))
            } catch {
                outcome = .failure(error)
            }
            running.cancel()
            _ = try await running.value
            await connection.close()
            try outcome.get()
        }
    }

    private static func ended(_ job: Int, on connection: Connection) async throws -> [String?] {
        try await eventually("job \(job) has ended") {
            try await ["succeeded", "dead"].contains(
                connection.value("select state from millrace.jobs where id = \(job)") ?? "")
        }
        return [
            try await connection.value("select state from millrace.jobs where id = \(job)"),
            try await connection.value("select attempt from millrace.jobs where id = \(job)"),
            try await connection.value("select errors -> -1 ->> 'error' from millrace.job(\(job))"),
        ]
    }

    @Test func `a worker renders what is built in and what is published, and the job keeps what came of it`()
        async throws
    {
        try await Self.withWorker { connection in
            let built = try await connection.int(
                """
                select millrace.template_render('welcome', '{"app_name": "Shop", "user_name": "Ada", "other": 7}', 'de-AT')
                """)
            #expect(try await Self.ended(built, on: connection)[0] == "succeeded")
            let result = "select result from millrace.jobs where id = \(built)"
            #expect(
                try await connection.column(
                    "select k from jsonb_object_keys((\(result))) k order by k collate \"C\"")
                    == ["html", "locale", "subject", "template", "text", "version"])
            #expect(
                try await connection.bool(
                    """
                    select r ->> 'template' = 'welcome' and r ->> 'locale' = 'de' and r -> 'version' = '0' and r ->> 'text' like '%Ada%'
                           and r ->> 'subject' like '%Shop%' and r ->> 'html' like '%Ada%' from (\(result)) x(r)
                    """))
            // Published, and of text alone. It is not live yet: the worker checks it first.
            try await connection.run(
                """
                select millrace.template_publish('bill', 'Bill {{number}}', null, 'Pay {{number}}!', '{"number": {"required": true}}')
                """)
            let own = try await connection.int("select millrace.template_render('bill', '{\"number\": \"4711\"}')")
            #expect(try await Self.ended(own, on: connection)[0] == "succeeded")
            #expect(
                try await connection.bool(
                    """
                    select result = '{"template": "bill", "locale": "en", "version": 1, "subject": "Bill 4711", "text": "Pay 4711!", "html": null}'
                      from millrace.jobs where id = \(own)
                    """))
        }
    }

    @Test func `what can never be rendered is dead after one run, and says why`() async throws {
        try await Self.withWorker { connection in
            for (args, reason) in [
                (#"{"template": "nosuch", "data": {}}"#, "template nosuch: no version of that name can be used"),
                (#"{"template": "welcome", "data": {"app_name": "Shop"}}"#, "template welcome: the variable user_name"),
                (#"{"template": "welcome", "data": []}"#, "template welcome: the data are not an object"),
                (#"{"data": {}}"#, "the arguments name no template"),
                (#"{"template": "welcome", "locale": 7}"#, "the locale is not a text"),
                (#"{"template": "welcome", "to": "a"}"#, "the arguments have more than template, locale and data"),
                ("[]", "the arguments are not an object"),
            ] {
                let job = try await connection.int("select millrace.enqueue('template.render', '\(args)')")
                let ended = try await Self.ended(job, on: connection)
                #expect(ended[0] == "dead" && ended[1] == "1", "\(ended)")
                #expect(ended[2]?.contains(reason) == true, "\(ended)")
            }
        }
    }

    private static func file(_ kind: String, of job: Int, on connection: Connection) async throws -> [UInt8] {
        let hex = try await connection.value(
            """
            select encode(string_agg(p.bytes, '' order by p.n), 'hex')
              from jsonb_array_elements((select result -> 'files' from millrace.jobs where id = \(job))) f
              join millrace.blob b on b.id = decode(substr(f ->> 'storage_url', 6), 'hex')
              join millrace.blob_piece p on p.upload = b.upload
             where f ->> 'kind' = '\(kind)' and b.size = (f ->> 'size')::bigint
            """)
        var (digits, bytes) = (Array((hex ?? "").utf8)[...], [UInt8]())
        while digits.count > 1 {
            bytes.append(UInt8(String(decoding: digits.prefix(2), as: UTF8.self), radix: 16) ?? 0)
            digits = digits.dropFirst(2)
        }
        return bytes
    }

    private static func text(ofPDF bytes: [UInt8]) async throws -> (text: String, title: String) {
        let path = NSTemporaryDirectory() + "millrace-\(UUID().uuidString).pdf"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let text = try await Program.run("pdftotext", [path, "-"]).text
        let about = try await Program.run("pdfinfo", [path]).text
        return (text.precomposedStringWithCompatibilityMapping, about)
    }

    @Test func `a template becomes files, whose blobs the result names`() async throws {
        try await Self.withWorker([.mail, .documents, .media]) { connection in
            let job = try await connection.int(
                """
                select millrace.template_render('welcome', '{"app_name": "Shop", "user_name": "Ada"}', 'de', options => '{"to": "blob"}', actor => 'ada')
                """)
            #expect(try await Self.ended(job, on: connection)[0] == "succeeded")
            let html = String(decoding: try await Self.file("html", of: job, on: connection), as: UTF8.self)
            let text = String(decoding: try await Self.file("text", of: job, on: connection), as: UTF8.self)
            #expect(html.contains("Ada") && html.contains("<html"))
            #expect(text.contains("Ada") && !text.contains("<html"))
            #expect(
                try await connection.bool(
                    """
                    select r ->> 'template' = 'welcome' and r ->> 'locale' = 'de' and r -> 'version' = '0' and not r ? 'html' and not r ? 'subject'
                           and r -> 'files' = (select m.files from millrace.media((r ->> 'media')::uuid, 'ada') m)
                           and r -> 'files' -> 0 ->> 'mime_type' = 'text/html; charset=utf-8'
                      from (select result from millrace.jobs where id = \(job)) x(r)
                    """))
            // Nothing of what was said to the template is left in the database but the files.
            #expect(try await connection.int("select count(*) from millrace.media where wish is not null") == 0)
            #expect(try await connection.bool("select args - 'media' = '{}' from millrace.jobs where id = \(job)"))
            #expect(
                try await connection.int("select count(*) from millrace.blob_reference where owner like 'media:%'") == 2
            )
            #expect(try await connection.bool("select (millrace.person_erase('ada') -> 'media')::int = 1"))
            #expect(try await connection.int("select count(*) from millrace.blob_reference") == 0)
        }
    }

    @Test func `a template becomes a PDF of its text under its subject, in any script`() async throws {
        try await Self.withWorker([.mail, .documents, .media]) { connection in
            try await connection.run(
                """
                select millrace.template_publish('bill', 'Rechnung {{number}}: Grüße', '<p>only in HTML</p>',
                    E'Schöne Grüße an {{name}}!\\n\\nÄpfel, Öl, Übermaß: {{number}}\\n\\nمرحبا بالعالم\\n{{rows}}', '{"number": {}, "name": {"required": true}, "rows": {"max": 5000}}')
                """)
            let job = try await connection.int(
                """
                select millrace.template_render('bill', jsonb_build_object('number', '4711', 'name', 'Jörg', 'rows', (select string_agg('row ' || n, chr(10)) from generate_series(1, 200) n)),
                    options => '{"to": "pdf"}', actor => 'ada')
                """)
            let ended = try await Self.ended(job, on: connection)
            #expect(ended[0] == "succeeded", "\(ended)")
            let bytes = try await Self.file("pdf", of: job, on: connection)
            #expect(bytes.starts(with: Array("%PDF".utf8)))
            let (text, about) = try await Self.text(ofPDF: bytes)
            for line in [
                "Rechnung 4711: Grüße", "Schöne Grüße an Jörg!", "Äpfel, Öl, Übermaß: 4711", "مرحبا بالعالم", "row 200",
            ] {
                #expect(text.contains(line), "\(line): \(text.prefix(400))")
            }
            #expect(!text.contains("only in HTML"))
            #expect(about.contains("Rechnung 4711: Grüße") && !about.contains("Pages:           1\n"), "\(about)")
        }
    }

    /// The example that the guide shows.
    private static func example(_ part: String) throws -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let text = try String(
            contentsOf: root.appendingPathComponent("deploy/examples/invoice/invoice/en/\(part)"), encoding: .utf8)
        return text.replacing("'", with: "''")
    }

    /// A picture of one red pixel.
    private static let dot =
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"

    @Test func `a template becomes pages with a table of as many rows as there are, and a picture`() async throws {
        try await Self.withWorker([.mail, .documents, .media]) { connection in
            try await connection.run(
                """
                select millrace.template_publish('invoice', '\(Self.example("subject.txt"))', '\(Self.example("body.html"))', '\(Self.example("body.txt"))',
                    '\(Self.example("variables.json"))');
                select millrace.blob_put(sha256('\\x\(Self.dot)'), '\\x\(Self.dot)')
                """)
            let data =
                "jsonb_build_object('number', '47<11', 'date', 'today', 'customer', 'Jörg & Söhne', 'total', '30.00', 'rows', (select jsonb_agg(jsonb_build_object('item', 'heron ' || n, 'count', n, 'price', n || '.00')) from generate_series(1, 90) n))"
            let logo = "{\"logo\": \"blob:' || encode(sha256('\\x\(Self.dot)'), 'hex') || '\"}"
            func render(_ data: String, _ more: String = "") async throws -> Int {
                try await connection.int(
                    "select millrace.template_render('invoice', \(data), options => ('{\"to\": \"pdf\", \"part\": \"html\"\(more)}')::jsonb, actor => 'ada')"
                )
            }
            let job = try await render(data, ", \"pictures\": \(logo)")
            // Kept for as long as it is needed.
            #expect(
                try await connection.int(
                    "select count(*) from millrace.blob_reference where owner like 'media:%:of:logo'")
                    <= 1)
            let ended = try await Self.ended(job, on: connection)
            #expect(ended[0] == "succeeded", "\(ended)")
            let (text, about) = try await Self.text(ofPDF: try await Self.file("pdf", of: job, on: connection))
            for line in ["Invoice 47<11", "Jörg & Söhne", "heron 90", "90.00", "page 2 of "] {
                #expect(text.contains(line), "\(line): \(text.prefix(400))")
            }
            #expect(about.contains("Title:           Invoice 47<11"), "\(about)")
            #expect(
                try await connection.int(
                    "select count(*) from millrace.blob_reference where owner like 'media:%:of:logo'")
                    == 0)
            // What a page does not know, and a picture that was not handed in, ends the job with a sentence.
            let bare = try await Self.ended(try await render(data), on: connection)
            #expect(bare[0] == "dead" && bare[1] == "1", "\(bare)")
            #expect(
                try await connection.value("select sentence from millrace.media where status = 'failed'")
                    == "line 4: no picture was handed in as logo")
            let empty = try await Self.ended(
                try await render("\(data) || '{\"rows\": [{\"item\": \"x\"}]}'"), on: connection)
            #expect(empty[2]?.contains("the variable count is missing") == true, "\(empty)")
            for (options, code, sentence) in [
                (#"{"part": "html"}"#, "22023", "are only for a PDF"),
                (#"{"to": "pdf", "part": "body"}"#, "22023", "options.part is unknown"),
                (#"{"to": "pdf", "pictures": {}}"#, "22023", "is only for the HTML part"),
                (
                    #"{"to": "pdf", "part": "html", "pictures": {"a": "https://a.example/x.png"}}"#, "22023",
                    "options.pictures is not"
                ),
                (
                    #"{"to": "pdf", "part": "html", "pictures": {"a": "blob:0000000000000000000000000000000000000000000000000000000000000000"}}"#,
                    "P0002", "there is nothing under the storage_url of the picture a"
                ),
            ] {
                let refusal = try await connection.refusal(
                    of: "select millrace.template_render('invoice', \(data), options => '\(options)', actor => 'ada')")
                #expect(refusal?.sqlState == code && refusal?.message.contains(sentence) == true, "\(options)")
            }
        }
    }

    @Test func `what cannot be rendered into a file is dead after one run, and its media say why`() async throws {
        try await Self.withWorker([.mail, .documents, .media]) { connection in
            // Its template is gone by the time that it is rendered.
            try await connection.run(
                """
                insert into millrace.media (id, what, wish, owner, caller, status, created_at)
                values (gen_random_uuid(), 'template', '{"template": "nosuch", "data": {}, "to": "pdf"}', 'ada', current_user, 'waiting', now())
                """)
            let job = try await connection.int(
                """
                select millrace.enqueue('template.render', jsonb_build_object('media', id), run_at => now() + interval '1 hour') from millrace.media
                """)
            try await connection.run(
                "update millrace.media set job = \(job); select millrace.reschedule(\(job), now())")
            let ended = try await Self.ended(job, on: connection)
            #expect(ended[0] == "dead" && ended[1] == "1", "\(ended)")
            #expect(ended[2]?.contains("template nosuch: no version of that name can be used") == true, "\(ended)")
            #expect(
                try await connection.bool(
                    "select status = 'failed' and sentence like 'template nosuch%' and wish is null from millrace.media"
                ))
            for (options, sentence) in [
                (#"{"to": "paper"}"#, "options.to is unknown"), (#"{"too": "pdf"}"#, "options.too is unknown"),
                ("[]", "options is not a JSON object"),
            ] {
                let refusal = try await connection.refusal(
                    of:
                        "select millrace.template_render('welcome', '{\"app_name\": \"a\", \"user_name\": \"b\"}', options => '\(options)')"
                )
                #expect(refusal?.sqlState == "22023" && refusal?.message.contains(sentence) == true)
            }
        }
    }

    @Test func `what cannot be rendered is refused when it is handed in`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.template_publish('bill', 'S', null, 'T {{number}}', '{"number": {"required": true}, "note": {}}')
                """)
            let accepted = try await connection.int("select millrace.template_render('bill', '{\"number\": 1}')")
            #expect(
                try await connection.value("select kind from millrace.jobs where id = \(accepted)") == "template.render"
            )
            for (call, state, sentence) in [
                ("'nosuch'", "P0002", "there is no template nosuch"),
                ("'bill'", "22023", "the template bill requires number"),
                (#"'bill', '{"number": " ", "note": "x"}'"#, "22023", "the template bill requires number"),
                ("'welcome', '{}'", "22023", "the template welcome requires app_name, user_name"),
                ("'bill', '[1]'", "22023", "data is not a JSON object"),
                ("'bill', null", "22023", "data is not a JSON object"),
                ("'Bill'", "22023", "the template's name 'Bill' is malformed"),
                (#"'bill', '{"number": 1}', 'German'"#, "22023", "the locale 'German' is malformed"),
                (
                    "'bill', jsonb_build_object('number', repeat('x', 262145))", "53400",
                    "more than the 262144 allowed"
                ),
            ] {
                let refusal = try await connection.refusal(of: "select millrace.template_render(\(call))")
                #expect(refusal?.sqlState == state, "\(call)")
                #expect(refusal?.message.contains(sentence) == true, "\(call): \(refusal?.message ?? "-")")
            }
            #expect(try await connection.int("select count(*) from millrace.job") == 1)
        }
    }
}
