import Blobs
import Documents
import Foundation
import Postgres
import TestSupport
import Testing

/// The database's part alone.
@Suite struct RegisterTests {
    @Test func `the same id and content is answered as the first time, another content is refused`() async throws {
        try await withDocuments(works: false) { bench in
            let id = UUID().uuidString.lowercased()
            #expect(try await bench.submit(hello(), "'A', id => '\(id)', password => 'p'") == id)
            #expect(try await bench.submit(hello(), "'A', id => '\(id)'") == id)
            let blob = try await bench.store.put(hello())
            for (call, code) in [
                ("'blob:\(blob)', 'B', id => '\(id)'", "23505"),
                ("'blob:\(String(repeating: "0", count: 64))'", "P0002"), ("'ftp://x/y'", "22023"),
                ("'https://user@host/x'", "22023"), ("'blob:\(blob)', size => 1", "22023"),
                ("'blob:\(blob)', options => '{\"colour\": 1}'", "22023"),
                ("'blob:\(blob)', options => '{\"languages\": [\"../x\"]}'", "22023"),
                ("'blob:\(blob)', options => '{\"policy\": \"lax\"}'", "22023"),
            ] {
                let refusal = try await bench.connection.refusal(of: "select millrace.document_register(\(call))")
                #expect(refusal?.sqlState == code, "\(call)")
            }
            #expect(try await bench.connection.int("select count(*) from millrace.documents") == 1)
            let jobs = "select count(*) from millrace.jobs where kind = 'document.receive'"
            #expect(try await bench.connection.int(jobs) == 1)
        }
    }

    @Test func `a feed of a lesson, a tenant or one's own shows what its reader may see`() async throws {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            try await connection.run(
                """
                select millrace.document_register('https://a.example/1', 'one', lesson_id => 'l7', actor => 'ann');
                select millrace.document_register('https://a.example/2', 'two', lesson_id => 'l8', tenant => 'acme', actor => 'ann');
                select millrace.document_register('https://a.example/3', 'three', lesson_id => 'l7', actor => 'ben')
                """)
            func feed(_ arguments: String) async throws -> [String] {
                try await connection.column(
                    "select d.title || ' ' || f.change from millrace.document_feed(\(arguments)) f join millrace.document d on d.id = f.id order by f.seq"
                )
            }
            #expect(try await feed("actor => 'ann'") == ["one created", "two created"])
            #expect(try await feed("lesson_id => 'l7', actor => 'ann'") == ["one created"])
            #expect(try await feed("tenant => 'acme', actor => 'ann'") == ["two created"])
            #expect(try await feed("tenant => 'acme', actor => 'ben'").isEmpty)
            #expect(try await feed("lesson_id => 'l7'") == ["one created", "three created"])
            let last = try await connection.int("select max(seq) from millrace.document_feed(actor => 'ann')")
            try await connection.run(
                "select millrace.document_delete(lesson_id => 'l7', actor => 'ann'); select millrace.documents_changes()"
            )
            #expect(
                try await connection.column(
                    "select change from millrace.document_feed('l7', since => \(last), actor => 'ann')") == ["deleted"])
            #expect(try await connection.refusal(of: "select millrace.document_feed()")?.sqlState == "22023")
            #expect(
                try await connection.refusal(of: "select millrace.document_feed(actor => 'ann', page => 501)")?.sqlState
                    == "22023")
            for field in ["lesson_id", "tenant"] {
                let call = "select millrace.document_feed(\(field) => repeat('x', $), actor => 'ann')"
                #expect(try await connection.refusal(of: call.replacing("$", with: "128")) == nil)
                for size in ["0", "129"] {
                    #expect(try await connection.refusal(of: call.replacing("$", with: size))?.sqlState == "22023")
                }
            }
            try await connection.run("select millrace.person_erase('ben', 'ben')")
            #expect(try await connection.int("select count(*) from millrace.document_change where owner = 'ben'") == 0)
            #expect(try await feed("lesson_id => 'l7', actor => 'ben'").isEmpty)
        }
    }

    @Test func `a feed shows another tenant, another person or a role without claims nothing`() async throws {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            let role = TestCluster.name("feed")
            try await connection.run(
                """
                create role \(role) nologin; grant usage on schema millrace to \(role);
                do $$ declare f regprocedure; begin
                    for f in select p.oid from pg_proc p where p.pronamespace = 'millrace'::regnamespace and p.proname in ('document_feed', 'document_register') loop
                        execute format('grant execute on function %s to \(role)', f);
                    end loop;
                end $$;
                select millrace.grant_enqueue('\(role)')
                """)
            func asking(_ claims: String, _ sql: String) async throws -> String? {
                try await connection.run(
                    "begin; set local role \(role); select set_config('request.jwt.claims', '\(claims)', true)")
                let answer = try await connection.value(sql)
                try await connection.run("commit")
                return answer
            }
            _ = try await asking(
                #"{"sub": "ann", "tenant": "acme"}"#,
                "select millrace.document_register('https://a.example/1', 'one', lesson_id => 'l7')")
            for (claims, sees) in [
                (#"{"sub": "ann", "tenant": "acme"}"#, "1 1 1"), (#"{"sub": "ben", "tenant": "acme"}"#, "1 1 0"),
                (#"{"sub": "eve", "tenant": "other"}"#, "0 0 0"), (#"{"sub": "eve"}"#, "0 0 0"),
            ] {
                #expect(
                    try await asking(
                        claims,
                        """
                        select (select count(*) from millrace.document_feed('l7')) || ' ' || (select count(*) from millrace.document_feed(tenant => 'acme'))
                            || ' ' || (select count(*) from millrace.document_feed())
                        """) == sees, "\(claims)")
            }
            try await connection.run("begin; set local role \(role)")
            #expect(try await connection.refusal(of: "select millrace.document_feed('l7')")?.sqlState == "42501")
            try await connection.run("rollback; drop owned by \(role); drop role \(role)")
        }
    }

    @Test func `what was put by a link is registered once, and belongs to the document then`() async throws {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            let upload = "from millrace.document_upload('a.pdf', 'application/PDF', 3, actor => 'ann')"
            #expect(try await connection.refusal(of: "select url \(upload)")?.sqlState == "55000")
            try await connection.run("select millrace.link_key_set(sha256('k'), 'https://a.example')")
            let place = try await connection.value("select storage_url \(upload)") ?? ""
            let register = "millrace.document_register('\(place)', id => '\(UUID())', actor => 'ann')"
            #expect(try await connection.refusal(of: "select \(register)")?.sqlState == "P0002")
            let blob = try await bench.store.put(hello())
            try await connection.run(
                "select millrace.upload_arrived('\(place.dropFirst(7))', decode('\(blob)', 'hex'))")
            let id = try await connection.value("select \(register)")
            #expect(try await connection.value("select \(register)") == id)
            #expect(
                try await connection.column("select owner from millrace.blob_reference") == ["document:\(id ?? "")"])
            #expect(
                try await connection.refusal(of: "select millrace.document_register('\(place)', actor => 'bob')")?
                    .sqlState == "P0002")
            for bad in ["'', 'application/pdf', 3", "'a', 'pdf', 3", "'a', 'application/pdf', 0"] {
                let refusal = try await connection.refusal(
                    of: "select millrace.document_upload(\(bad), actor => 'ann')")
                #expect(refusal?.sqlState == "22023", "\(bad)")
            }
        }
    }

    @Test func `what is deleted is gone, ten at a time, and only where it may be seen`() async throws {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            for n in 0..<12 { try await bench.submit(hello() + [UInt8(n)], "lesson_id => 'l', actor => 'ann'") }
            let kept = try await bench.submit(hello(), "'kept', actor => 'bob'")
            #expect(
                try await connection.refusal(
                    of: "select millrace.document_delete(array(select id from millrace.documents))")?.sqlState
                    == "53400")
            #expect(
                try await connection.int(
                    "select count(*) from millrace.document_delete(lesson_id => 'l', actor => 'bob')")
                    == 0)
            let delete = "select count(*) from millrace.document_delete(lesson_id => 'l', actor => 'ann') where deleted"
            #expect(try await connection.int(delete) == 10)
            #expect(try await connection.int(delete) == 2)
            #expect(try await connection.int(delete) == 0)
            #expect(try await connection.int("select count(*) from millrace.blob_reference") == 1)
            let waiting = "select count(*) from millrace.jobs where kind = 'document.receive' and state = 'ready'"
            #expect(try await connection.int(waiting) == 1)
            #expect(
                try await connection.int(
                    "select count(*) from millrace.documents_changes(0, 100) where change = 'deleted'") == 12)
            let erased = try await connection.value("millrace.person_erase('bob', actor => 'bob')->>'documents'")
            #expect(erased == "1")
            #expect(
                try await connection.bool(
                    "select owner is null and title is null from millrace.documents where id = '\(kept)'"))
            #expect(try await connection.int("select count(*) from millrace.blob_reference") == 0)
        }
    }

    @Test func `a document whose job is gone ends`() async throws {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            let id = try await bench.submit(hello(), "password => 'p'")
            try await connection.run("select millrace.cancel(job) from millrace.document")
            #expect(try await connection.int("select millrace.documents_check()") == 0)
            try await connection.run("update millrace.document set changed_at = changed_at - interval '1 minute'")
            #expect(try await connection.int("select millrace.documents_check()") == 1)
            #expect(try await bench.ended(id) == "failed internal")
            #expect(try await connection.int("select count(*) from millrace.document_secret") == 0)
            #expect(try await connection.bool("select millrace.document_retry('\(id)')"))
            #expect(try await connection.value("select status from millrace.documents") == "processing")
        }
    }

    @Test func `a run of an earlier round, or without its lease, writes nothing`() async throws {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            let id = try await bench.submit(hello())
            let end = { (round: Int) in
                "select millrace.document_ended('1-1-1', '\(id)', \(round), 'failed', 'internal', 's', '[]', 1)"
            }
            #expect(try await connection.refusal(of: end(1))?.sqlState == "55000")
            #expect(try await connection.bool("select not millrace.document_stage('1-1-1', '\(id)', 2, 'ocr')"))
            #expect(try await connection.value("select status || stage from millrace.documents") == "processingreceive")
        }
    }

    @Test func `a run whose database has lost its writes starts again`() async throws {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            let id = try await bench.submit(hello())
            let job = try await connection.int("select job from millrace.document")
            try await connection.run(
                """
                set session_replication_role = replica;
                insert into millrace.lease (session, number, at, n, lo, hi, ids) values (17, 8, now(), 1, \(job), \(job), array[\(job)::bigint]);
                reset session_replication_role;
                """)
            let run = "'11-8-\(job)', '\(id)', 1"
            let steps = [
                "select millrace.document_inspected(\(run), '{}', 'application/pdf', 1, false, false, '[]', 1)",
                "select millrace.document_pages_put(\(run), '[{\"page\": 1, \"status\": \"done\"}]', 1, false)",
                "select millrace.document_ended(\(run), 'completed', null, null, '[]', 1)",
            ]
            // The blob, the inspection, and the page: each step notices that the last one's write is missing.
            for (step, loss) in zip(
                steps,
                [
                    "update millrace.document set blob = null", "update millrace.document set inspection = null",
                    "update millrace.document set pages_done = 0",
                ])
            {
                try await connection.run("begin; \(loss)")
                #expect(try await connection.refusal(of: step)?.sqlState == "55000", "\(step)")
                try await connection.run("rollback")
                try await connection.run(step)
            }
            #expect(try await connection.value("select status from millrace.documents") == "completed")
        }
    }

    @Test func `search finds forms of words in their language, page after page`() async throws {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            let id = try await bench.submit(hello(), "'Rail', tenant => 't'")
            try await connection.run(
                """
                insert into millrace.document_page (document, page, status, stage, changed_at)
                select '\(id)', n, 'done', 'completed', now() from generate_series(1, 5) n;
                insert into millrace.document_content (document, page, tenant, config, text, content, search)
                select '\(id)', n, 't', c.config, c.text, '{"origin": "read"}', to_tsvector(c.config::regconfig, c.text)
                  from generate_series(1, 5) n
                 cross join lateral (select case when n = 5 then 'german' else 'english' end as config,
                                            case when n = 5 then 'Die Lokomotiven fuhren' else 'The engines of railways ' || n end as text) c
                """)
            func found(_ query: String, _ more: String = "") async throws -> [String] {
                try await connection.column(
                    "select number || ' ' || highlight from millrace.document_search('\(query)'\(more))")
            }
            #expect(
                try await found("engine", ", page => 2") == [
                    "1 ⟦engines⟧ of railways", "2 ⟦engines⟧ of railways",
                ])
            let next = try await connection.column("select next from millrace.document_search('engine', page => 2)")
                .last
            #expect(try await found("engine", ", after => '\(try #require(next))'").count == 2)
            #expect(try await found("Lokomotive") == ["5 ⟦Lokomotiven⟧ fuhren"])
            #expect(try await found("engine -railway").isEmpty)
            #expect(try await found("engine", ", tenant => 'u'").isEmpty)
            #expect(try await connection.value("millrace.document_text('\(id)', 2, 2)") == "The engines of railways 2")
        }
    }

    @Test func `search puts the page first that fits best, page after page`() async throws {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            let id = try await bench.submit(hello(), "'Lakes', tenant => 't'")
            try await connection.run(
                """
                insert into millrace.document_page (document, page, status, stage, changed_at)
                select '\(id)', n, 'done', 'completed', now() from generate_series(1, 4) n;
                insert into millrace.document_content (document, page, tenant, config, text, content, search)
                select '\(id)', n, 't', 'english', t, '{"origin": "read"}', to_tsvector('english', t)
                  from unnest(array['one lake and many hills and woods', 'a lake', 'lakes beside lakes, and a lake', 'hills'])
                       with ordinality x(t, n)
                """)
            func found(_ more: String) async throws -> [String] {
                try await connection.column("select number from millrace.document_search('lake', \(more))")
            }
            #expect(try await found("tenant => 't'") == ["1", "2", "3"])
            #expect(try await found("sort => 'rank'") == ["2", "3", "1"])
            var (seen, after): ([String], String?) = ([], nil)
            repeat {
                let more = after.map { ", after => '\($0)'" } ?? ""
                seen += try await found("sort => 'rank', page => 1\(more)")
                after =
                    try await connection.column(
                        "select next from millrace.document_search('lake', sort => 'rank', page => 1\(more))"
                    ).last
            } while after != nil && seen.count < 9
            #expect(seen == ["2", "3", "1"])
            #expect(
                try await connection.bool(
                    """
                    select count(*) filter (where rank is null) = 3 from millrace.document_search('lake')
                    """))
            for wrong in ["sort => 'best'", "sort => null", "sort => 'rank', after => '1/2'", "after => '0.1/1/2'"] {
                await #expect(throws: PostgresError.self) { try await found(wrong) }
            }
        }
    }

    @Test func `search says where on the page the words stand, also one that a hyphen parts`() async throws {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            let id = try await bench.submit(hello(), "'Rail', tenant => 't'")
            func word(_ text: String, _ left: Int, _ top: Int) -> String {
                """
                {"text": "\(text)", "box": {"left": \(left), "top": \(top), "right": \(left + 20), "bottom": \(top + 10)}}
                """
            }
            let first = [word("(Engines,", 10, 20), word("moun-", 60, 20)].joined(separator: ", ")
            let second = [word("tain", 10, 40), word("engine", 40, 40)].joined(separator: ", ")
            try await connection.run(
                """
                insert into millrace.document_page (document, page, status, stage, changed_at)
                values ('\(id)', 1, 'done', 'completed', now());
                insert into millrace.document_content (document, page, tenant, config, text, content, search)
                select '\(id)', 1, 't', 'english', x.t, x.c, millrace.document_index('english', x.t, x.c)
                  from (select E'(Engines, moun-\\ntain engine' as t, $c${"origin": "read", "width": 100, "height": 200,
                    "codes": [{"format": "qr", "text": "ticket 7",
                               "box": {"left": 50, "top": 100, "right": 70, "bottom": 120}}],
                    "blocks": [{"lines": [{"words": [\(first)]}, {"words": [\(second)]}]}]}$c$::jsonb as c) x
                """)
            func boxes(_ query: String) async throws -> String? {
                try await connection.value("select boxes::text from millrace.document_search('\(query)')")
            }
            #expect(
                try await boxes("engine") == "[[0.1000, 0.1000, 0.3000, 0.1500], [0.4000, 0.2000, 0.6000, 0.2500]]")
            #expect(
                try await boxes("mountains") == "[[0.6000, 0.1000, 0.8000, 0.1500], [0.1000, 0.2000, 0.3000, 0.2500]]")
            #expect(try await boxes("ticket") == "[[0.5000, 0.5000, 0.7000, 0.6000]]")
            // A page of which nothing is known but its text has none.
            try await connection.run("update millrace.document_content set content = '{}'")
            #expect(try await boxes("engine") == "[]")
        }
    }

    @Test func `a word that a hyphen parts at the end of a line is found whole, and one with a hyphen in its parts`()
        async throws
    {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            func matches(_ text: String, _ query: String) async throws -> Bool {
                try await connection.value(
                    """
                    select (millrace.document_index('english', '\(text)', '{}')
                            @@ websearch_to_tsquery('english', '\(query)'))::text
                    """) == "true"
            }
            let parted = "the old moun-\ntain rail\u{AD}\nway of a well-\nknown town"
            for query in ["mountains", "\"mountain railway\"", "well-known", "moun"] {
                let isFound = try await matches(parted, query)
                #expect(isFound, "\(query)")
            }
            let isFound = try await matches("no hyphen\nhere", "hyphenhere")
            #expect(!isFound)
            let joined = try await connection.value("millrace.document_joined('Baden-\nBaden, 1-\n2, moun- \n tain')")
            #expect(joined == "Baden-\nBaden, 1-\n2, mountain")
        }
    }
}
