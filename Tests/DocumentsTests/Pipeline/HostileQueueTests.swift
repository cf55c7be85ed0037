import Documents
import Foundation
import Pages
import Postgres
import Sandbox
import TestSupport
import Testing

/// Documents made to hurt, on the queue, with all protections and with fewer. With fewer, all that must be refused is tried, and of the others every
/// fourth; all of them where `MILLRACE_LONG` is set.
@Suite struct HostileQueueTests {
    private struct Case: Decodable, Sendable {
        var file: String
        /// reject, bounded or ok.
        var want: String
    }

    /// The queue's and the tables' state of an ended document.
    private struct DocumentEnd: CustomStringConvertible {
        var file: String
        var status: String
        var reason: String?
        var cpu: Int
        var pages: [String]

        var description: String { "\(file): \(status) \(reason ?? "") \(cpu) ms \(pages)" }
    }

    /// Runs the script that makes the corpus. Nine gigabytes of its bombs are zeros: one of them packed, again and again, unpacks to the same, and
    /// packing them all took a third of this test.
    private static let maker = """
        import runpy, sys, zlib
        ZEROS = bytes(1 << 20)
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        PIECE = packer.compress(ZEROS) + packer.flush(zlib.Z_FULL_FLUSH)

        class Packer:
            def __init__(self, level):
                self.pieces = 0

            def compress(self, block):
                assert block == ZEROS, "this packs blocks of zeros alone"
                self.pieces += 1
                return PIECE if self.pieces > 1 else b"\\x78\\xda" + PIECE

            def flush(self):
                return b"\\x03\\x00" + ((self.pieces << 20) % 65521 << 16 | 1).to_bytes(4, "big")

        zlib.compressobj = Packer
        sys.argv = sys.argv[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
        """

    private static let isThere = ProcessInfo.processInfo.environment["MILLRACE_CORPUS"] != nil

    private static let corpus = Task {
        let corpus = try #require(ProcessInfo.processInfo.environment["MILLRACE_CORPUS"])
        let directory = NSTemporaryDirectory() + "millrace-hostile-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let made = try await Program.run(
            "/usr/bin/python3", ["-c", maker, corpus + "/make_hostile.py", directory], errors: true)
        try #require(made.status == 0, "the corpus could not be made: it needs python3-pil: \(made.text)")
        let cases = try JSONDecoder().decode(
            [Case].self, from: Data(contentsOf: URL(fileURLWithPath: directory + "/hostile.json")))
        try #require(cases.count >= 55)
        return try cases.map { one in
            (one, Array(try Data(contentsOf: URL(fileURLWithPath: directory + "/" + one.file))))
        }
    }

    @Test(.enabled(if: isThere, "MILLRACE_CORPUS is not set: the hostile corpus goes untried"))
    func `every case of the corpus ends as it should`() async throws {
        let files = try await Self.corpus.value
        try await costs(of: files.filter { $0.0.want == "reject" })
        try await play(files, .all)
    }

    @Test(.enabled(if: isThere, "MILLRACE_CORPUS is not set: the hostile corpus goes untried"))
    func `with fewer protections it ends so, too`() async throws {
        let files = try await Self.corpus.value
        let isLong = ProcessInfo.processInfo.environment["MILLRACE_LONG"] != nil
        let others = files.filter { $0.0.want != "reject" }.enumerated()
        try await play(
            files.filter { $0.0.want == "reject" }
                + others.filter { isLong || $0.offset.isMultiple(of: 4) }.map(\.element), .fewer)
    }

    /// A file that must be refused is refused within 2 s and 200 MB.
    private func costs(of files: [(Case, [UInt8])]) async throws {
        for (one, bytes) in files {
            let probed = try await withFile(bytes) { file in
                await outcome { try await workshop.probe(file) }
            }
            guard case .failure(let failure) = probed else {
                Issue.record("\(one.file) was taken")
                continue
            }
            #expect(failure.reason != .internal && failure.reason != .crash, "\(one.file): \(failure)")
            #expect(!failure.mayGoWell, "\(one.file)")
            #expect(failure.usage.cpu < .seconds(2), "\(one.file): \(failure.usage)")
            #expect(failure.usage.peak < 200 << 20, "\(one.file): \(failure.usage)")
        }
    }

    private func play(_ files: [(Case, [UInt8])], _ protections: KernelProtections) async throws {
        let warnings = Warnings()
        try await protections.withChildren { children in
            try await withDocuments(
                { shop, _ in
                    shop.children = children
                    shop.pageCPU = .seconds(1)
                }, log: warnings.log
            ) { bench in
                var ids: [(Case, String)] = []
                for (one, bytes) in files {
                    ids.append((one, try await bench.submit(bytes, #"options => '{"outputs": ["pdf", "preview"]}'"#)))
                }
                try await eventually("all hostile documents have ended", within: .seconds(1800)) {
                    try await bench.connection.bool(
                        "not exists (select from millrace.documents where status = 'processing')")
                }
                for (one, id) in ids {
                    let end = try await end(of: id, one.file, bench)
                    judge(end, one.want, protections)
                    if end.status == "completed" {
                        #expect(try await active(in: try await bench.output(id, "pdf")) == [], "\(protections) \(end)")
                    }
                }
                try await judgeRuns(bench, documents: ids.count)
                #expect(try await bench.read(hello()).ended == "completed", "the worker stands still: \(protections)")
            }
        }
        #expect(warnings.contains("layers of the sandbox") == (protections.refused != 0))
        if protections.refused != 0 { #expect(warnings.contains("sandbox.refused=\(protections.refused)")) }
    }

    private func judge(_ end: DocumentEnd, _ want: String, _ protections: KernelProtections) {
        switch want {
        case "reject":
            #expect(end.status == "failed", "\(protections) \(end)")
            #expect(!["internal", "crash", nil].contains(end.reason), "\(protections) \(end)")
            #expect(end.cpu < 2000, "\(protections) \(end)")
        case "ok":
            #expect(end.status == "completed" && end.reason == nil, "\(protections) \(end)")
            #expect(end.pages.allSatisfy { $0.hasPrefix("done") }, "\(protections) \(end)")
        default:
            #expect(["completed", "failed"].contains(end.status), "\(protections) \(end)")
            #expect(
                end.reason != "internal" && !end.pages.contains { $0.contains("internal") }, "\(protections) \(end)")
            // The most that all stages of a page may compute, each tried twice.
            #expect(end.cpu < 300_000, "\(protections) \(end)")
        }
    }

    private func end(of id: String, _ file: String, _ bench: DocumentBench) async throws -> DocumentEnd {
        let row = try await bench.connection.column(
            """
            select x from (values (1, (select status from millrace.document where id = '\(id)')),
                (2, (select coalesce(reason, '') from millrace.document where id = '\(id)')),
                (3, (select cpu_ms::text from millrace.document where id = '\(id)'))) v(n, x) order by n
            """)
        let pages = try await bench.connection.column(
            "select distinct concat_ws(' ', status, reason) from millrace.document_pages where document = '\(id)'")
        return DocumentEnd(
            file: file, status: row[0], reason: row[1].isEmpty ? nil : row[1], cpu: Int(row[2]) ?? .max, pages: pages)
    }

    /// A file that ends the same way each time ran once; one that may end differently, twice.
    private func judgeRuns(_ bench: DocumentBench, documents: Int) async throws {
        let connection = bench.connection
        let retried = try await connection.column("select error from millrace.history where outcome = 4")
        for error in retried {
            #expect(
                error.hasPrefix("crash:") || error.hasPrefix("timeout: the child was killed after"),
                "retried without hope: \(error)")
        }
        #expect(try await connection.int("select coalesce(max(tries), 0) from millrace.document_page") <= 1)
        #expect(try await connection.int("select coalesce(max(attempt), 0) from millrace.history") <= 2)
        #expect(try await bench.runs("document.receive") <= documents + retried.count)
        #expect(try await connection.int("select count(*) from millrace.history where outcome = 3") == 0)
    }
}
