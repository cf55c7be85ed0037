import BlobKit
import Blobs
import Composition
import Listeners
import Postgres
import Telemetry
import TestSupport
import Testing

/// Links to files end with what they are of, and not only with their time.
@Suite struct FileLinkTests {
    /// A worker's address, and the database behind it.
    private struct Served {
        let owner: Connection
        let base: String

        func status(_ link: String) async throws -> String {
            let link = link.replacing(FileLinkTests.publicURL, with: base)
            return try await Program.run("sh", ["-c", "curl -s -m 60 -o /dev/null -w '%{http_code}' '\(link)'"]).text
        }

        /// A link to the only file of a message, for this person.
        func attachment(_ message: String, _ person: String) async throws -> String {
            try await owner.value("millrace.chat_attachment_link('\(message)', actor => '\(person)')") ?? ""
        }
    }

    private static let publicURL = "https://files.example"

    private static func with(_ body: (Served) async throws -> Void) async throws {
        try await withDatabase { database in
            let owner = try await database.connect()
            let pool = Pool(database.options, size: 3)
            let routes = BlobRoutes(
                links: BlobLinks(publicURL: publicURL, secrets: ["a secret of some length"]),
                store: BlobPlace.postgres.store(pool: pool), largest: 1_000_000,
                addresses: ClientAddress(proxies: []), log: .silent)
            try await routes.tellDatabase()
            var options = Listener.Options(address: try #require(ListenAddress("127.0.0.1:0")), token: nil)
            options.grace = .seconds(1)
            let listener = try Listener(options, routes: routes.all, log: .silent)
            async let running: Void = listener.run()
            try await owner.run(
                """
                select millrace.blob_put(sha256('heron'), 'heron'), millrace.blob_put(sha256('crane'), 'crane');
                select millrace.family_create('f', 'UTC'), millrace.family_join('f', 'anna', 'parent'), millrace.family_join('f', 'ben', 'teen'),
                    millrace.family_join('f', 'cleo', 'teen')
                """)
            try await body(Served(owner: owner, base: "http://127.0.0.1:\(listener.address.port)"))
            listener.stop()
            try await running
            await pool.close()
            await owner.close()
        }
    }

    private static let file =
        #"[{"storage_url": "blob:' || encode(sha256('heron'), 'hex') || '", "mime_type": "image/png"}]"#

    @Test func `a link to a message's file ends with the message, and with its reader's sight of it`() async throws {
        try await Self.with { served in
            let thread = try await served.owner.value("millrace.chat_thread_create(actor => 'anna')") ?? ""
            func send(_ person: String) async throws -> String {
                try await served.owner.value(
                    "millrace.chat_send('\(thread)', 'look', ('\(Self.file)')::jsonb, actor => '\(person)')") ?? ""
            }
            let (first, second, third) = (try await send("anna"), try await send("anna"), try await send("cleo"))
            let anna = try await served.attachment(first, "anna")
            let ben = try await served.attachment(first, "ben")
            for link in [anna, ben] { #expect(try await served.status(link) == "200") }
            // Another file of the same content is another file, and its link goes on.
            let other = try await served.attachment(second, "ben")
            #expect(try await served.owner.bool("select millrace.chat_delete('\(first)', actor => 'anna')"))
            for link in [anna, ben] { #expect(try await served.status(link) == "404") }
            #expect(try await served.status(other) == "200")
            // Who leaves sees nothing any more; the others do.
            let annas = try await served.attachment(second, "anna")
            try await served.owner.run("select millrace.family_leave('f', 'ben')")
            #expect(try await served.status(other) == "404")
            #expect(try await served.status(annas) == "200")
            // Nor does who comes back, of what was before.
            try await served.owner.run("select millrace.family_join('f', 'ben', 'teen')")
            #expect(try await served.status(other) == "404")
            // Whose messages are erased.
            let cleos = try await served.attachment(third, "anna")
            #expect(try await served.status(cleos) == "200")
            try await served.owner.run("select millrace.person_erase('cleo', actor => 'cleo')")
            #expect(try await served.status(cleos) == "404")
            #expect(try await served.status(annas) == "200")
        }
    }

    @Test func `a link to a document or to media ends when they are deleted`() async throws {
        try await Self.with { served in
            let owner = served.owner
            let document =
                try await owner.value(
                    "millrace.document_register('blob:' || encode(sha256('heron'), 'hex'), actor => 'anna')") ?? ""
            let media =
                try await owner.value(
                    "millrace.media_process('blob:' || encode(sha256('heron'), 'hex'), '{\"strip\": true}', actor => 'anna')"
                )
                ?? ""
            try await owner.run(
                """
                select millrace.blob_keep(sha256('crane'), 'document:\(document):pdf'), millrace.blob_keep(sha256('crane'), 'media:\(media):stripped');
                insert into millrace.document_output (document, kind, blob, size) values ('\(document)', 'pdf', sha256('crane'), 5);
                insert into millrace.media_file (media, kind, blob, size, mime_type) values ('\(media)', 'stripped', sha256('crane'), 5, 'image/png')
                """)
            let links = [
                try await owner.value("millrace.document_link('\(document)', 'original')") ?? "",
                try await owner.value("millrace.document_link('\(document)', 'pdf')") ?? "",
                try await owner.value("millrace.media_link('\(media)', 'stripped')") ?? "",
            ]
            for link in links { #expect(try await served.status(link) == "200") }
            try await owner.run("select millrace.document_delete(array['\(document)'::uuid])")
            for (link, status) in zip(links, ["404", "404", "200"]) { #expect(try await served.status(link) == status) }
            try await owner.run("select millrace.media_delete('\(media)')")
            #expect(try await served.status(links[2]) == "404")
            // One that the schema's owner makes of a blob alone has its time, and nothing else.
            let bare = try await owner.value("millrace.blob_link(sha256('crane'), 'image/png')") ?? ""
            #expect(try await served.status(bare) == "200")
        }
    }
    @Test func `a link to an export answers a line for each row, with links to its files, for its time and its person`()
        async throws
    {
        try await Self.with { served in
            let owner = served.owner
            let thread = try await owner.value("millrace.chat_thread_create(actor => 'anna')") ?? ""
            for (person, text) in [("anna", "look"), ("ben", "benswords")] {
                try await owner.run(
                    "select millrace.chat_send('\(thread)', '\(text)', ('\(Self.file)')::jsonb, actor => '\(person)')")
            }
            let link = try await owner.value("millrace.person_export_link('anna', actor => 'anna')") ?? ""
            let here = link.replacing(Self.publicURL, with: served.base)
            let lines = try await Program.run("curl", ["-s", "-m", "60", here]).text.split(separator: "\n").map(
                String.init)
            #expect(
                try await lines.count == owner.int("select count(*) from millrace.person_export('anna')")
                    && lines.count > 2)
            #expect(!lines.contains { $0.contains("benswords") })
            let message = try #require(lines.first { $0.contains("\"thing\":\"message\"") })
            let url = try #require(message.firstMatch(of: /https:[^"]+v1[^"]+/)).output
            #expect(try await served.status(String(url)) == "200")
            #expect(try await served.status(link.replacing("/x.616e6e61.", with: "/x.62656e.")) == "404")
            #expect(try await served.status(link.replacing("/v1/exports/x.", with: "/v1/exports/g.")) == "404")
            #expect(
                try await owner.refusal(of: "select millrace.person_export_link('anna', actor => 'ben')")?.sqlState
                    == "42501")
            let links = BlobLinks(publicURL: Self.publicURL, secrets: ["a secret of some length"])
            let token = String(link.split(separator: "/").last ?? "")
            guard case .open(let export) = links.openExport(token, at: 0) else {
                Issue.record("its own link does not open")
                return
            }
            #expect(export.person == "anna" && links.openExport(token, at: export.expiry + 1) == .expired)
        }
    }
}
