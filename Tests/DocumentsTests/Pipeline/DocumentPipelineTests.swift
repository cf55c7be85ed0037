import Blobs
import Documents
import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

/// Documents on the queue, read by the real programs.
@Suite(.serialized) struct DocumentPipelineTests {
    @Test func `a document that is not fetched now is fetched later, and that uses up no try`() async throws {
        let refusals = Mutex(3)
        try await withDocuments(fetch: { _, _, store in
            let isRefused = refusals.withLock { left in
                left -= 1
                return left >= 0
            }
            if isRefused { throw FetchRefusal(wait: .milliseconds(10)) }
            return (try await store.put(hello()), hello().count)
        }) { bench in
            let id = try #require(
                try await bench.connection.value(
                    "select millrace.document_register('https://a.example/x', 'A', actor => 'ann')"))
            #expect(try await bench.ended(id) == "completed")
            #expect(try await bench.runs("document.receive") == 4)
            #expect(
                try await bench.connection.column(
                    "select attempt::text from millrace.jobs where kind = 'document.receive'") == ["1"])
        }
    }

    @Test func `what says its text itself is read, copied, shown and found`() async throws {
        try await withDocuments { bench in
            let active = hello(catalogue: "/OpenAction<</S/JavaScript/JS(app.beep\\(\\))>>")
            let (id, ended) = try await bench.read(active, "'Greeting', lesson_id => 'l1', tenant => 'acme'")
            #expect(ended == "completed")
            #expect(try await bench.text(id) == "Hello out there")
            #expect(try await bench.pages(id) == ["1 done"])
            #expect(try await bench.runs("document.page") == 0)
            #expect(try await bench.runs("document.finish") == 0, "its first job has finished it")
            let copy = try await bench.output(id, "pdf")
            let found = try await withPath(copy) { try await Program.run("pdftotext", [$0, "-"]) }
            #expect(found.text.hasPrefix("Hello out there"))
            let json = try await withPath(copy) { try await Program.run("qpdf", ["--json", $0]) }
            #expect(!json.text.contains("JavaScript"))
            #expect(try await bench.output(id, "preview").starts(with: [0x89, 0x50, 0x4e, 0x47]))
            #expect(try await bench.output(id, "report").starts(with: Array("%PDF".utf8)))
            // The role that enqueued the document may name it and its outputs, for its tenant.
            let granted = try await bench.connection.column(
                """
                select distinct coalesce(g.tenant || ' ' || (g.owner = current_user), 'nobody')
                  from millrace.blob_reference r left join millrace.blob_grant g on g.blob = r.blob
                """)
            #expect(granted == ["acme true"])
            let original = try await bench.connection.value("select sha256 from millrace.documents where id = '\(id)'")
            let stored = try await bench.store.put(active)
            #expect(original == "\(stored)")
            let searched = try await bench.connection.column(
                "select highlight from millrace.document_search('hello -nowhere', tenant => 'acme')")
            #expect(searched == ["⟦Hello⟧ out there"])
            #expect(
                try await bench.connection.column("select 1 from millrace.document_search('hello', tenant => 'other')")
                    .isEmpty)
            let changes = try await bench.connection.column(
                "select change from millrace.documents_changes() where id = '\(id)' order by seq")
            #expect(changes.first == "created" && changes.last == "processing_complete" && changes.contains("updated"))
            #expect(
                try await bench.connection.value(
                    "select data->>'status' || ' ' || (data->>'pages') || ' ' || (data->>'lesson_id') from millrace.events where type = 'com.classnotes.document.processed' and subject = '\(id)'"
                ) == "completed 1 l1")
        }
    }

    @Test func `scans, frames and mixed documents are read page by page`() async throws {
        let mixed = try await scannedPDF([1, 2, 3], own: [2])
        let picture = try await scannedPNG(4)
        try await withDocuments { bench in
            let ids = [
                try await bench.submit(mixed), try await bench.submit(picture),
                try await bench.submit(tiff(frames: 2, loops: false)),
            ]
            for id in ids { #expect(try await bench.ended(id) == "completed") }
            let pages = try await bench.text(ids[0]).split(separator: "\u{c}").map(String.init)
            try #require(pages.count == 3)
            #expect(pages[0].contains("page number 1") && pages[2].contains("page number 3"))
            #expect(pages[1] == "Page 2 says it itself")
            let copy = try await bench.output(ids[0], "pdf")
            let found = try await withPath(copy) { try await Program.run("pdftotext", [$0, "-"]) }
            let words = found.text
            #expect(words.contains("page number 1") && words.contains("page number 3"))
            #expect(try await bench.text(ids[1]).contains("page number 4"))
            #expect(try await bench.pages(ids[2]) == ["1 done", "2 done"])
            #expect(
                try await bench.connection.value(
                    "select mime_type || ' ' || pages from millrace.documents where id = '\(ids[2])'") == "image/tiff 2"
            )
            // Two pictures, one of them of two frames, and two scanned pages: no page has run twice.
            #expect(try await bench.runs("document.page") == 5)

            let again = try await bench.read(picture)
            #expect(again.ended == "completed")
            #expect(try await bench.text(again.id).contains("page number 4"))
            let cached = "select cached from millrace.documents where id = '\(again.id)'"
            #expect(try await bench.connection.int(cached) == 1)
            // Another tenant's page is read again; what that tenant has used so far stops nothing, because it has no quota.
            #expect(try await bench.read(hello(), "tenant => 'other'").ended == "completed")
            let other = try await bench.read(picture, "tenant => 'other'")
            #expect(other.ended == "completed")
            #expect(
                try await bench.connection.int("select cached from millrace.documents where id = '\(other.id)'") == 0)

            #expect(try await bench.connection.bool("select millrace.document_retry('\(ids[0])', array[3])"))
            #expect(try await bench.ended(ids[0]) == "completed")
            #expect(try await bench.text(ids[0]).contains("page number 3"))
            #expect(try await bench.connection.bool("select not millrace.document_retry('\(ids[0])')"))
        }
    }

    @Test func `a page with a picture and words of its own is read beside those, once`() async throws {
        let stamped = try await scannedPDF([5, 6], stamped: [5])
        try await withDocuments { bench in
            func count(_ words: String, _ text: String) -> Int { text.components(separatedBy: words).count - 1 }
            func origins(_ id: String) async throws -> [String] {
                try await bench.connection.column(
                    "select content ->> 'origin' from millrace.document_content where document = '\(id)' order by page")
            }
            let (id, ended) = try await bench.read(stamped)
            #expect(ended == "completed")
            #expect(try await origins(id) == ["mixed", "read"])
            let copy = try await bench.output(id, "pdf")
            let found = try await withPath(copy) { try await Program.run("pdftotext", [$0, "-"]) }
            for text in [try await bench.text(id), found.text] {
                #expect(count("Received on Monday", text) == 1, "\(text)")
                #expect(count("page number 5", text) == 1, "\(text)")
                #expect(count("page number 6", text) == 1, "\(text)")
            }
            // The copy says all of it itself, over the same pictures: there is nothing to be read again.
            let again = try await bench.read(copy)
            #expect(again.ended == "completed")
            #expect(try await origins(again.id) == ["own", "own"])
            #expect(count("page number 5", try await bench.text(again.id)) == 1)
        }
    }

    /// A page of 200,000 inches beside one that says hello.
    private let halfBad = pdf([
        "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 14400000 14400000]/Contents 5 0 R>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 5 0 R"
            + "/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
        stream("", "BT /F 24 Tf 72 700 Td (Hello out there) Tj ET"),
    ])

    @Test func `a page that fails is a page, and a strict document fails with it`() async throws {
        try await withDocuments { bench in
            let partial = try await bench.read(halfBad)
            #expect(partial.ended.hasPrefix("completed"))
            #expect(try await bench.pages(partial.id) == ["1 failed too_large", "2 done"])
            #expect(try await bench.text(partial.id) == "Hello out there")
            let strict = try await bench.read(halfBad, #"options => '{"policy": "strict"}'"#)
            #expect(strict.ended == "failed too_large")
            #expect(
                try await bench.connection.int(
                    "select data->'failed_pages' from millrace.events where subject = '\(strict.id)'") == 1)
        }
    }

    @Test func `a password opens a document, and is gone when that has ended`() async throws {
        let locked = try await encrypted(hello(), user: "user", owner: "owner")
        try await withDocuments { bench in
            let none = try await bench.read(locked)
            #expect(none.ended == "failed encrypted")
            #expect(try await bench.read(locked, "password => 'wrong'").ended == "failed wrong_password")
            let right = try await bench.read(locked, "password => 'user'")
            #expect(right.ended == "completed")
            #expect(try await bench.text(right.id) == "Hello out there")
            #expect(try await bench.connection.int("select count(*) from millrace.document_secret") == 0)
            #expect(
                try await bench.connection.refusal(of: "select millrace.document_retry('\(right.id)')")?.sqlState
                    == "55000")
            // Nothing of it is anywhere else.
            #expect(
                try await bench.connection.int(
                    "select count(*) from millrace.document d where to_jsonb(d)::text like '%wrong\"%' or to_jsonb(d)::text like '%\"user\"%'"
                ) == 0)
        }
    }

    @Test func `hostile documents end with a reason, after one run`() async throws {
        try await withDocuments({ shop, _ in shop.pageCPU = .seconds(1) }) { bench in
            let cases: [([UInt8], [String])] = [
                (endlessForms, ["failed timeout", "failed memory"]), ([], ["failed empty"]),
                (Array("<html></html>".utf8), ["failed unsupported"]),
                (Array(hello().prefix(120)), ["failed malformed"]),
            ]
            for (bytes, reasons) in cases {
                let (id, ended) = try await bench.read(bytes)
                let pages = try await bench.pages(id)
                #expect(reasons.contains(ended), "\(reasons): \(ended) \(pages)")
            }
            #expect(try await bench.runs("document.receive") == 4)
            #expect(try await bench.runs("document.page") <= 1)
            #expect(try await bench.read(hello()).ended == "completed")
        }
    }

    @Test func `an engine that crashes is asked twice, and no more`() async throws {
        let picture = try await scannedPNG(1)
        try await withDocuments({ $1.engine = "/bin/false" }) { bench in
            let (id, ended) = try await bench.read(picture)
            #expect(ended == "failed crash")
            #expect(try await bench.pages(id) == ["1 failed crash"])
            #expect(try await bench.runs("document.page") == 2)
        }
        try await withDocuments { bench in
            let (id, ended) = try await bench.read(picture, #"options => '{"languages": ["xxx"]}'"#)
            #expect(ended == "failed engine")
            #expect(try await bench.pages(id) == ["1 failed engine"])
            #expect(try await bench.runs("document.page") == 1)
        }
    }

    @Test func `quotas are counted, told of and kept`() async throws {
        try await withDocuments { bench in
            let connection = bench.connection
            try await connection.run("select millrace.quota_set('acme', 'pages', 2)")
            #expect(try await bench.read(halfBad, "tenant => 'acme'").ended.hasPrefix("completed"))
            #expect(try await bench.read(hello(), "tenant => 'acme'").ended == "failed quota")
            #expect(try await bench.read(hello(), "tenant => 'other'").ended == "completed")
            #expect(
                try await connection.column(
                    "select data->>'name' || ' ' || (data->>'used') from millrace.events where type = 'com.classnotes.quota.warning'"
                ) == ["pages 2"])
            let used = try await connection.column(
                "select name from millrace.quotas where tenant = 'acme' and used > 0 order by name")
            #expect(used == ["bytes", "cpu_seconds", "documents", "pages"])
            try await connection.run("select millrace.quota_set('acme', 'documents', 2)")
            let blob = try await bench.store.put(hello())
            let refused = "select millrace.document_register('blob:\(blob)', tenant => 'acme')"
            #expect(try await connection.refusal(of: refused)?.sqlState == "53400")
        }
    }
}
