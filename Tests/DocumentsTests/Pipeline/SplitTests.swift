import Blobs
import Documents
import Foundation
import Pages
import Postgres
import Sandbox
import TestSupport
import Testing

/// Scans that separators split into documents, on the queue, by the real programs.
@Suite(.serialized) struct SplitTests {
    private static let splits = #"options => '{"split": "separators", "outputs": ["pdf"]}'"#

    /// A TIFF or a PDF of scanned pages: a number, or a text that is on the page as a bar code.
    private enum Sheet: Sendable {
        case page(Int)
        case code(String)
    }

    private func raster(_ sheet: Sheet) async throws -> Raster {
        switch sheet {
        case .page(let number): return try await scan(number)
        case .code(let text):
            let page = try await scan(0)
            return try Raster.paper(page.width, page.height, dpi: page.head.dpi)
                .with(bars: text, x: 60, y: 60, module: 2, height: page.height - 120)
        }
    }

    private func stack(_ sheets: [Sheet]) async throws -> [UInt8] {
        var rasters: [Raster] = []
        for sheet in sheets { rasters.append(try await raster(sheet)) }
        return picturePDF(rasters)
    }

    /// Of each part: its pages in the whole, its title, and its status.
    private func parts(_ id: String, _ bench: DocumentBench) async throws -> [String] {
        try await bench.connection.column(
            """
            select (p ->> 'first') || '-' || (p ->> 'last') || ' ' || (p ->> 'title') || ' ' || (p ->> 'status')
              from jsonb_array_elements(millrace.document_story('\(id)') -> 'parts') p
            """)
    }

    private func allEnded(_ bench: DocumentBench) async throws {
        try await eventually("all documents have ended") {
            try await bench.connection.bool("not exists (select from millrace.documents where status = 'processing')")
        }
    }

    @Test func `a stack of seven pages with two separators becomes three documents`() async throws {
        try await withDocuments { bench in
            let connection = bench.connection
            try await connection.run("select millrace.quota_set('acme', 'pages', 7)")
            let original = try await stack([
                .page(1), .page(2), .code("PATCHT"), .page(4), .page(5), .code("millrace:split"), .page(7),
            ])
            let (id, ended) = try await bench.read(
                original, "'Post', tenant => 'acme', lesson_id => 'l1', actor => 'anna', \(Self.splits)")
            #expect(ended == "completed")
            try await allEnded(bench)
            #expect(
                try await parts(id, bench) == [
                    "1-2 Post (1 of 3) completed", "4-5 Post (2 of 3) completed", "7-7 Post (3 of 3) completed",
                ])
            let ids = try await connection.column(
                "select id from millrace.document where parent = '\(id)' order by parent_pages")
            for (part, numbers) in zip(ids, [[1, 2], [4, 5], [7]]) {
                let text = try await bench.text(part)
                #expect(
                    numbers.allSatisfy { text.contains("page number \($0)") } && !text.contains("number 3"), "\(text)")
                let copy = try await bench.output(part, "pdf")
                let found = try await withPath(copy) { try await Program.run("pdftotext", [$0, "-"]) }
                #expect(found.text.contains("page number \(numbers[0])"), "\(found.text)")
                let about = try await connection.value(
                    "select concat_ws(' ', tenant, lesson_id, owner, pages, mime_type, parent) from millrace.documents where id = '\(part)'"
                )
                #expect(about == "acme l1 anna \(numbers.count) application/pdf \(id)")
            }
            // The whole stays as it was, each page was read once, and counted once.
            let whole = try #require(
                BlobID(try await connection.value("select sha256 from millrace.documents where id = '\(id)'") ?? ""))
            #expect(try await bench.store.get(whole) == original)
            #expect(try await bench.runs("document.page") == 7)
            #expect(try await connection.value("select used from millrace.quotas where name = 'pages'") == "7")
            #expect(try await connection.value("select used from millrace.quotas where name = 'documents'") == "1")
            #expect(
                try await connection.column("select number from millrace.document_search('PATCHT', tenant => 'acme')")
                    == ["3"], "a code is found as a word is")
            let listed = try await connection.column("select id from millrace.document_list(parent => '\(id)')")
            #expect(Set(listed) == Set(ids))
            let told = try await connection.column(
                "select distinct document from millrace.document_change where data ->> 'parent' = '\(id)'")
            #expect(Set(told) == Set(ids))
            // Parts stay when the whole goes; a person's go with the person.
            #expect(try await connection.bool("select deleted from millrace.document_delete(array['\(id)']::uuid[])"))
            #expect(try await bench.text(ids[0]).contains("page number 1"))
            try await connection.run("select millrace.person_erase('anna')")
            #expect(try await connection.int("select count(*) from millrace.document_content") == 0)
            #expect(try await connection.int("select count(*) from millrace.blob_reference") == 0)
        }
    }

    @Test func `separators at the ends, side by side, alone, or missing`() async throws {
        try await withDocuments { bench in
            let ends = try await bench.submit(
                try await stack([
                    .code("PATCHT"), .page(1), .code("PATCHT"), .code("PATCHT"), .page(2), .code("PATCHT"),
                ]),
                "'Ends', \(Self.splits)")
            let alone = try await bench.submit(
                try await stack([.code("PATCHT"), .code("PATCHT")]), "'Alone', \(Self.splits)")
            let none = try await bench.submit(
                try await stack([.page(1), .code("ASN00042")]), "'None', \(Self.splits)")
            let off = try await bench.submit(try await stack([.page(1), .code("PATCHT"), .page(2)]), "'Off'")
            try await allEnded(bench)
            #expect(
                try await parts(ends, bench) == ["2-2 Ends (1 of 2) completed", "5-5 Ends (2 of 2) completed"])
            for id in [alone, none, off] { #expect(try await parts(id, bench) == []) }
            #expect(
                try await bench.connection.value(
                    "select c ->> 'symbology' || ' ' || (c ->> 'text') from millrace.document_content x, jsonb_array_elements(x.content -> 'codes') c where x.document = '\(off)'"
                ) == "code128 PATCHT", "a code is read, and nothing is split")
        }
    }

    @Test func `a PDF with text of its own is split at a page that is drawn with bars, and keeps it`() async throws {
        try await withDocuments { bench in
            let module = 1.5
            var x = 60.0
            var drawing = "0 g"
            for isBar in bars("millrace:split:keep") {
                if isBar { drawing += " \(x) 60 \(module) 60 re f" }
                x += module
            }
            func content(_ text: String) -> String { "BT /F 14 Tf 60 140 Td (\(text)) Tj ET" }
            let objects =
                ["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R 5 0 R 7 0 R]/Count 3>>"]
                + ["First letter", "Second letter", "Its last page"].enumerated().flatMap { index, text in
                    [
                        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 200]/Contents \(4 + 2 * index) 0 R"
                            + "/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
                        stream("", content(text) + (index == 1 ? " " + drawing : "")),
                    ]
                }
            let id = try await bench.submit(pdf(objects), "'Own', \(Self.splits)")
            try await allEnded(bench)
            #expect(try await parts(id, bench) == ["1-1 Own (1 of 2) completed", "2-3 Own (2 of 2) completed"])
            let second = try #require(
                try await bench.connection.value(
                    "select id from millrace.document where parent = '\(id)' and pages = 2"))
            #expect(try await bench.text(second) == "Second letter\u{c}Its last page")
        }
    }

    @Test func `a run that is repeated after a kill finds the parts that are there`() async throws {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            let id = try await bench.submit(hello(), "'Twice', \(Self.splits)")
            let job = try await connection.int("select job from millrace.document")
            try await connection.run(
                """
                set session_replication_role = replica;
                insert into millrace.lease (session, number, at, n, lo, hi, ids) values (17, 8, now(), 1, \(job), \(job), array[\(job)::bigint]);
                reset session_replication_role;
                update millrace.document set inspection = '{}', pages = 3, pages_done = 2, pages_failed = 1;
                insert into millrace.document_page (document, page, status, stage, changed_at)
                select '\(id)', n, case n when 3 then 'failed' else 'done' end, 'completed', now() from generate_series(1, 3) n
                """)
            let run = "select millrace.document_part('11-8-\(job)', '\(id)', 1"
            let file = "x.blob, 10, '{}') from (select blob from millrace.document limit 1) x"
            #expect(try await connection.value("\(run), 2, 3, 'T (1 of 1)')") == "missing")
            #expect(try await connection.value("\(run), 2, 3, 'T (1 of 1)', \(file)") == "there")
            let once = try await connection.column(
                "select concat_ws(' ', id, pages, pages_done, pages_failed, job) from millrace.document order by seq")
            let jobs = try await connection.int("select count(*) from millrace.ready")
            #expect(try await connection.value("\(run), 2, 3, 'T (1 of 1)')") == "there")
            #expect(try await connection.value("\(run), 2, 3, 'T (1 of 1)', \(file)") == "there")
            #expect(
                try await connection.column(
                    "select concat_ws(' ', id, pages, pages_done, pages_failed, job) from millrace.document order by seq"
                ) == once)
            #expect(try await connection.int("select count(*) from millrace.ready") == jobs)
            let part = try #require(
                try await connection.value("select id from millrace.document where parent is not null"))
            #expect(
                try await connection.value(
                    "select concat_ws(' ', pages, pages_done, pages_failed, stage) from millrace.document where parent is not null"
                ) == "2 1 1 assemble")
            // One that was deleted is not made again, and an earlier round makes none.
            try await connection.run("select millrace.document_delete(array['\(part)']::uuid[])")
            #expect(try await connection.value("\(run), 2, 3, 'T (1 of 1)', \(file)") == "there")
            #expect(
                try await connection.value("select millrace.document_part('11-8-\(job)', '\(id)', 2, 1, 1, 'T')")
                    == "over")
            #expect(
                try await connection.refusal(of: "select millrace.document_part('11-9-\(job)', '\(id)', 1, 1, 1, 'T')")?
                    .sqlState == "55000")
        }
    }

    @Test func `a document that is not to be split is read without the program for codes`()
        async throws
    {
        let folder = NSTemporaryDirectory() + "millrace-children-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for stage in DocumentPrograms.Stage.required {
            try FileManager.default.createSymbolicLink(
                atPath: "\(folder)/millrace-\(stage.rawValue)", withDestinationPath: workshop.program(stage).path)
        }
        try await withDocuments({ shop, _ in shop.children = folder }) { bench in
            let scanned = try await stack([.page(1), .code("PATCHT")])
            let whole = try await bench.read(scanned, "'Whole'")
            #expect(whole.ended == "completed")
            #expect(try await bench.text(whole.id).contains("page number 1"))
        }
    }
}
