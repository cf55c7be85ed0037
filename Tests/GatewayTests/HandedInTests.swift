import BlobKit
import Blobs
import Foundation
import Gateway
import JSON
import Listeners
import Postgres
import Telemetry
import TestSupport
import Testing

/// What the app's server hands in for a person is on that person's phone, and on nobody else's.
@Suite struct HandedInTests {
    private static let server = "app_server_of_documents"
    private static let creatingServer = Task {
        let office = try await TestCluster.office()
        try await office.run("create role \(server)")
        await office.close()
    }
    private static let document = "00000000-0000-4000-8000-000000000001"

    /// The app's server has handed in a document of ada's, which was read, and one of nobody's.
    private static func with(_ body: @Sendable (GatewayWorld) async throws -> Void) async throws {
        try await creatingServer.value
        var setup = GatewayWorld.Setup()
        setup.script = """
            select millrace.grant_backend('\(server)');
            grant usage on schema millrace to \(server);
            do $g$ declare one regprocedure; begin
                for one in select oid::regprocedure from pg_proc where pronamespace = 'millrace'::regnamespace
                       and proname in ('document_register', 'document_upload', 'media_keep', 'media', 'document_list') loop
                    execute format('grant execute on function %s to \(server)', one);
                end loop;
            end $g$;
            select millrace.grant_enqueue('\(server)', 'document.receive'), millrace.link_key_set(sha256('k'), '\(publicURL)');
            select millrace.blob_put(sha256('heron'), 'heron'), millrace.blob_allow(sha256('heron'), '\(server)', null);
            set role \(server);
            select millrace.document_register('blob:' || encode(sha256('heron'), 'hex'), 'Algebra', lesson_id => 'l1', id => '\(document)', actor => 'ada');
            select millrace.document_register('https://a.example/x', 'Of the school', tenant => 'school', actor => 'ada');
            select millrace.document_register('https://a.example/y', 'Of bob', actor => 'bob');
            reset role;
            insert into millrace.document_page (document, page, status, stage, changed_at) values ('\(document)', 1, 'done', 'completed', now());
            insert into millrace.document_content (document, page, config, text, content, search)
            values ('\(document)', 1, 'simple', 'Cells divide.', '{}', to_tsvector('simple', 'Cells divide.'));
            select millrace.document_end('\(document)', 'completed', null, null)
            """
        try await GatewayWorld.with(setup, body)
    }

    @Test func `a document that the server registers for a person is in that person's list, feed and search`()
        async throws
    {
        try await Self.with { world in
            func titles(_ person: String) async throws -> [String] {
                let answer = try await world.call("document_list", as: person)
                #expect(answer.status == 200, "\(answer.text)")
                return (answer.json.items ?? []).compactMap { $0["title"]?.text }
            }
            #expect(try await titles("ada") == ["Algebra"])
            #expect(try await titles("bob") == ["Of bob"])
            #expect(try await titles("eve").isEmpty)
            // In a tenant the person has what is of that tenant, or of none.
            #expect(try await titles("ada@school") == ["Of the school", "Algebra"])
            #expect(try await titles("ada@club") == ["Algebra"])
            let named = #"{"id": "\#(Self.document)"}"#
            for (door, body, sign) in [
                ("document", named, "Algebra"), ("document_text", named, "Cells divide."),
                ("document_search", #"{"query": "cells"}"#, "Cells"), ("document_feed", "{}", "processing_complete"),
                ("document_feed", #"{"lesson_id": "l1"}"#, "processing_complete"),
                ("feed_mine", #"{"topics": ["documents"]}"#, "processing_complete"),
                ("document_link", #"{"id": "\#(Self.document)", "kind": "original"}"#, "https://files.example/"),
            ] {
                let hers = try await world.call(door, body)
                #expect(hers.status == 200 && hers.text.contains(sign), "\(door): \(hers.text)")
                for other in ["bob", "eve"] {
                    let others = try await world.call(door, body, as: other)
                    #expect(
                        others.status == 404 || !others.text.contains(Self.document) && !others.text.contains(sign),
                        "\(door) as \(other): \(others.text)")
                }
            }
            #expect(try await world.call("document_retry", named, as: "eve").status == 404)
            // It is the person's to delete.
            let gone = try await world.call("document_delete", #"{"ids": ["\#(Self.document)"]}"#)
            #expect(gone.json.items?.first?["deleted"] == .bool(true), "\(gone.text)")
            #expect(try await titles("ada").isEmpty)
        }
    }

    @Test func `a file that the server hands in for a person opens by the person's link`() async throws {
        try await Self.with { world in
            try await Self.withFiles(of: world) { base in
                try await world.owner.run("set role \(Self.server)")
                let id =
                    try await world.owner.value(
                        "millrace.media_keep('blob:' || encode(sha256('heron'), 'hex'), 'audio/mp4', 'heron.m4a', actor => 'ada')"
                    ) ?? ""
                try await world.owner.run("reset role")
                let named = #"{"id": "\#(id)"}"#
                let state = try await world.call("media", named)
                #expect(state.status == 200 && state.text.contains("heron.m4a"), "\(state.text)")
                #expect(try await world.call("media", named, as: "bob").status == 404)
                for (door, body) in [
                    ("media_link", #"{"id": "\#(id)", "kind": "file"}"#),
                    ("document_link", #"{"id": "\#(Self.document)", "kind": "original"}"#),
                ] {
                    #expect(try await world.call(door, body, as: "bob").status == 404)
                    let link = try #require(try await world.call(door, body).json.text)
                    let file = try await Program.run(
                        "curl", ["-s", "-m", "60", link.replacing(Self.publicURL, with: base)]
                    ).text
                    #expect(file == "heron", "\(door): \(file)")
                }
                #expect(try await world.call("media_delete", named, as: "bob").status == 404)
                #expect(try await world.call("media_delete", named).text == "true\n")
            }
        }
    }

    private static let publicURL = "https://files.example"

    /// A worker's address, which serves the files of links.
    private static func withFiles(of world: GatewayWorld, _ body: (String) async throws -> Void) async throws {
        let pool = Pool(world.database.options, size: 2)
        let routes = BlobRoutes(
            links: BlobLinks(publicURL: publicURL, secrets: ["a secret of some length"]),
            store: BlobPlace.postgres.store(pool: pool), largest: 1_000_000, addresses: ClientAddress(proxies: []),
            log: .silent)
        try await routes.tellDatabase()
        var options = Listener.Options(address: try #require(ListenAddress("127.0.0.1:0")), token: nil)
        options.grace = .seconds(1)
        let listener = try Listener(options, routes: routes.all, log: .silent)
        async let running: Void = listener.run()
        try await body("http://127.0.0.1:\(listener.address.port)")
        listener.stop()
        try await running
        await pool.close()
    }
}
