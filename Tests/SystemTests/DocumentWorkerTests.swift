import Foundation
import Glibc
import Postgres
import TestSupport
import Testing

/// The real worker, the real programs.
@Suite struct DocumentWorkerTests {
    /// Frames of a TIFF, each with other noise on it, so that none is blank and none is like another.
    private static func frames(_ count: Int) -> [UInt8] {
        func little(_ value: Int, _ size: Int = 4) -> [UInt8] {
            (0..<size).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        let side = 600
        var out = Array("II*\0".utf8) + little(8)
        for frame in 0..<count {
            let start = out.count
            let entries = [
                (256, 4, side), (257, 4, side), (258, 3, 8), (259, 3, 1), (262, 3, 1),
                (273, 4, start + 2 + 12 * 9 + 4), (277, 3, 1), (278, 4, side), (279, 4, side * side),
            ]
            out += little(entries.count, 2)
            for (tag, type, value) in entries { out += little(tag, 2) + little(type, 2) + little(1) + little(value) }
            var pixels = [UInt8](repeating: 255, count: side * side)
            for bar in 0...(frame % 7) {
                for row in 100 + 60 * bar..<130 + 60 * bar {
                    for column in 80 + 5 * frame..<400 { pixels[row * side + column] = 0 }
                }
            }
            let next = frame < count - 1 ? out.count + 4 + pixels.count : 0
            out += little(next) + pixels
        }
        return out
    }

    private static func withFile<Value>(_ bytes: [UInt8], _ name: String, _ body: (String) async throws -> Value)
        async throws -> Value
    {
        let directory = FileManager.default.temporaryDirectory.appending(path: "millrace-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = directory.appending(path: name)
        try Data(bytes).write(to: file)
        return try await body(file.path)
    }

    private static let hello: [UInt8] = {
        let content = "BT /F 24 Tf 72 700 Td (Hello out there) Tj ET"
        let objects = [
            "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
            "<</Length \(content.utf8.count)>>\nstream\n\(content)\nendstream",
        ]
        var out = "%PDF-1.7\n"
        var offsets: [Int] = []
        for (index, object) in objects.enumerated() {
            offsets.append(out.utf8.count)
            out += "\(index + 1) 0 obj\n\(object)\nendobj\n"
        }
        let start = out.utf8.count
        out += "xref\n0 5\n0000000000 65535 f \n"
        for offset in offsets { out += String(repeating: "0", count: 10 - "\(offset)".count) + "\(offset) 00000 n \n" }
        return Array((out + "trailer<</Size 5/Root 1 0 R>>\nstartxref\n\(start)\n%%EOF\n").utf8)
    }()

    /// 1. A worker has read some pages of many, and is killed. 2. Another reads the rest, and none of those again.
    @Test func `pages that a killed worker has read are not read again`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let victim = try await MillraceProcess.worker("victim", database: database.url)
            let submit = try await Self.withFile(Self.frames(24), "frames.tiff") { path in
                let submit = try MillraceProcess(["documents", "submit", path, "--quiet"], database: database.url)
                #expect(try await submit.ended() == 0, "\(submit.output)")
                return submit
            }
            let id = submit.output.trimmingCharacters(in: .whitespacesAndNewlines)
            let done = "select count(*) from millrace.document_pages where status = 'done'"
            try await eventually("some pages are done; the worker says: \(victim.output)") {
                try await connection.int(done) >= 2
            }
            victim.signal(SIGKILL)
            _ = try await victim.ended()
            let before = try await connection.column(
                "select page || ' ' || changed_at from millrace.document_page where status = 'done' order by page")
            #expect(before.count >= 2 && before.count < 24)
            let other = try await MillraceProcess.worker("other", database: database.url)
            let watch = try MillraceProcess(
                ["documents", "watch", id, "--timeout", "300s", "--jsonl"], database: database.url)
            #expect(try await watch.ended(within: .seconds(300)) == 0, "\(watch.output)")
            let after = try await connection.column(
                "select page || ' ' || changed_at from millrace.document_page where status = 'done' order by page")
            #expect(after.count == 24 && Set(before).isSubset(of: Set(after)))
            let runs = try await connection.int(
                "select count(*) from millrace.history h join millrace.kind k on k.id = h.kind where k.name = 'document.page' and h.outcome = 1"
            )
            #expect(runs == 24)
            #expect(watch.output.contains(#""status":"completed""#) && watch.output.contains(#""page":24"#))
            other.signal(SIGTERM)
            #expect(try await other.ended() == 0)
            await connection.close()
        }
    }

    /// The programs that a worker has started and not buried.
    private static func children(of parent: pid_t) -> [pid_t] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return all.compactMap { pid_t($0) }.filter { process in
            let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
            return status?.contains("\nPPid:\t\(parent)\n") == true
        }
    }

    /// 1. A worker reads a page: the program that read it stays warm. 2. It has nothing of the worker's. 3. The worker is killed: it is gone.
    @Test func `a program that reads documents has no secret of the worker's, and dies with it`() async throws {
        try await withDatabase { database in
            let secret = "what-signs-all-the-links"
            let worker = try await MillraceProcess.worker(
                "parent", database: database.url, environment: ["MILLRACE_SECRET": secret])
            try await Self.withFile(Self.frames(1), "frame.tiff") { path in
                let submit = try MillraceProcess(["documents", "submit", path, "--watch"], database: database.url)
                #expect(try await submit.ended(within: .seconds(120)) == 0, "\(submit.output)")
            }
            let children = Self.children(of: worker.pid)
            #expect(!children.isEmpty)
            for child in children {
                // Only root may look into one that has another user.
                guard let bytes = try? Data(contentsOf: URL(filePath: "/proc/\(child)/environ")) else { continue }
                let shown = String(decoding: bytes, as: UTF8.self)
                #expect(!shown.contains(secret) && !shown.contains("DATABASE_URL"), "\(shown)")
            }
            worker.signal(SIGKILL)
            _ = try await worker.ended()
            try await eventually("the programs are gone") { children.allSatisfy { kill($0, 0) != 0 && errno == ESRCH } }
        }
    }

    /// What an app shows its user: the PDF output, and the original file.
    @Test func `a document and what was made of it come by links`() async throws {
        try await withDatabase { database in
            let port = try freePort()
            let worker = try await MillraceProcess.worker(
                "links", database: database.url, ["--listen", "127.0.0.1:\(port)"],
                environment: [
                    "MILLRACE_PUBLIC_URL": "http://127.0.0.1:\(port)", "MILLRACE_SECRET": "a secret of some length",
                ])
            let id = try await Self.withFile(Self.hello, "letter.pdf") { path in
                let submit = try MillraceProcess(
                    ["documents", "submit", path, "--output", "pdf", "--output", "preview", "--watch", "--quiet"],
                    database: database.url)
                #expect(try await submit.ended(within: .seconds(120)) == 0, "\(submit.output)")
                return try await database.connect().value("select id from millrace.documents") ?? ""
            }
            let owner = try await database.connect()
            func fetched(_ kind: String) async throws -> Data {
                let link = try await owner.value("millrace.document_link('\(id)', '\(kind)')") ?? ""
                return try await Program.run("curl", ["-sf", "-m", "60", link]).output
            }
            #expect(Array(try await fetched("original")) == Self.hello)
            #expect(try await fetched("pdf").starts(with: Data("%PDF".utf8)))
            #expect(try await fetched("preview").starts(with: [0x89, 0x50, 0x4e, 0x47]))
            for (kind, code) in [("report", "55000"), ("text", "22023")] {
                let refusal = try await owner.refusal(of: "select millrace.document_link('\(id)', '\(kind)')")
                #expect(refusal?.sqlState == code)
            }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await owner.close()
        }
    }

    /// As an admin names it: only files beneath a listed directory are read.
    @Test func `a worker reads the files that its operator has listed, and no others`() async throws {
        try await withDatabase { database in
            try await Self.withFile(Self.hello, "letter.pdf") { path in
                let folder = String(path.dropLast("/letter.pdf".count))
                let connection = try await database.connect()
                func ended(_ source: String) async throws -> String {
                    let id = try await connection.value("millrace.document_register('file:\(source)')") ?? ""
                    let state =
                        "select status || ' ' || coalesce(reason, '') from millrace.documents where id = '\(id)'"
                    try await eventually("the document has ended") {
                        try await connection.value(state)?.hasPrefix("processing") == false
                    }
                    return try await connection.value(state) ?? ""
                }
                let closed = try await MillraceProcess.worker("closed", database: database.url)
                #expect(try await ended(path) == "failed unsupported")
                #expect(try await ended("/proc/self/environ") == "failed unsupported")
                closed.signal(SIGTERM)
                #expect(try await closed.ended() == 0)
                let open = try await MillraceProcess.worker(
                    "open", database: database.url, environment: ["MILLRACE_DOCUMENT_DIRS": folder])
                #expect(try await ended(path) == "completed ")
                #expect(try await ended("/proc/self/environ") == "failed unsupported")
                #expect(try await ended("/etc/passwd") == "failed unsupported")
                let submit = try MillraceProcess(["documents", "submit", "file:\(path)"], database: database.url)
                #expect(try await submit.ended() == 0, "\(submit.output)")
                #expect(
                    try await connection.int(
                        "select count(*) from millrace.document where source is null and blob is not null") >= 2)
                open.signal(SIGTERM)
                #expect(try await open.ended() == 0)
                for setting in ["/proc", "srv", "/"] {
                    let wrong = try MillraceProcess(
                        ["worker"], database: database.url, environment: ["MILLRACE_DOCUMENT_DIRS": setting])
                    #expect(try await wrong.ended() == 2)
                    #expect(wrong.output.contains("MILLRACE_DOCUMENT_DIRS takes absolute paths"), "\(wrong.output)")
                }
                await connection.close()
            }
        }
    }

    @Test func `what never ends, or is too large, is refused while it is read, and leaves nothing`() async throws {
        try await withDatabase { database in
            let submit = try MillraceProcess(
                ["documents", "submit", "/dev/zero"], database: database.url,
                environment: ["MILLRACE_DOCUMENT_BYTES": "1MB"])
            #expect(try await submit.ended() == 2, "\(submit.output)")
            #expect(submit.output.contains("more than 1000000 bytes"), "\(submit.output)")
            let connection = try await database.connect()
            let left = ["blob", "blob_upload", "blob_piece", "document"].map {
                "(select count(*) from millrace.\($0))"
            }
            #expect(try await connection.int("select \(left.joined(separator: " + "))") == 0)
            await connection.close()
        }
    }

    @Test func `a newcomer submits, watches, reads, searches, fetches and deletes`() async throws {
        try await withDatabase { database in
            let worker = try await MillraceProcess.worker("one", database: database.url)
            func run(_ arguments: [String], _ code: Int32 = 0) async throws -> String {
                let process = try MillraceProcess(["documents"] + arguments, database: database.url)
                let ended = try await process.ended(within: .seconds(120))
                #expect(ended == code, "\(arguments): \(process.output)")
                return process.output.trimmingCharacters(in: .whitespacesAndNewlines)
            }
            let id = UUID().uuidString.lowercased()
            try await Self.withFile(Self.hello, "letter.pdf") { path in
                let said = try await run(["submit", path, "--watch", "--id", id, "--lesson", "l1"])
                #expect(
                    said.contains("\(id)  read: 1 page") && said.contains("millrace documents text \(id)"), "\(said)")
                #expect(said.contains("millrace documents fetch \(id)"))
                #expect(try await run(["submit", path, "--id", id, "--lesson", "l1"]) == id)
                let copy = path + ".copy"
                #expect(try await run(["fetch", id, "-o", copy, "--quiet"]).isEmpty)
                #expect(try Data(contentsOf: URL(filePath: copy)).starts(with: Array("%PDF".utf8)))
                #expect(try await run(["fetch", id, "-o", copy], 1).contains("cannot be made"))
            }
            #expect(try await run(["text", id]) == "Hello out there")
            #expect(try await run(["text", id, "--json"]).contains(#""text": "Hello""#))
            #expect(try await run(["search", "hello", "--json"]).contains("⟦Hello⟧"))
            #expect(try await run(["list", "--status", "completed", "--jsonl"]).contains(#""title": "letter.pdf""#))
            let story = try await run(["show", id, "--json"])
            #expect(story.contains(#""version": 1"#) && story.contains(#""kind": "preview""#))
            #expect(try await run(["retry", id]).contains("nothing to be read again"))
            #expect(try await run(["retry", id, "--page", "2"], 2).contains("has the pages 1 to 1"))
            #expect(try await run(["retry", id, "--page", "1"]).contains("is read again"))
            _ = try await run(["watch", id, "--timeout", "60s"])
            #expect(try await run(["text", id]) == "Hello out there")
            #expect(try await run(["show", UUID().uuidString], 3).contains("there is no document"))
            try await Self.withFile(Array("no document".utf8), "notes.txt") { path in
                let said = try await run(["submit", path, "--watch"], 8)
                #expect(said.contains("failed: unsupported"))
            }
            let local = try await run(["submit", "https://127.0.0.1:8443/scan.pdf", "--watch"], 8)
            #expect(local.contains("failed: unsupported"), "\(local)")
            #expect(try await run(["delete", "--lesson", "l1", "--dry-run"]) == "1 document would be deleted")
            #expect(try await run(["delete", "--lesson", "l1"], 2).contains("--yes"))
            #expect(try await run(["delete", "--lesson", "l1", "--yes"]) == "1 document deleted")
            #expect(try await run(["text", id], 3).contains("the document was deleted"))
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
        }
    }

    @Test func `a picture is handed in, waited for, and its files are written`() async throws {
        try await withDatabase { database in
            let worker = try await MillraceProcess.worker("pictures", database: database.url)
            try await Self.withFile(Self.frames(1), "frame.tiff") { path in
                let folder = path + ".made"
                let process = try MillraceProcess(
                    ["media", "process", path, "--thumbnail", "60x60", "--strip", "--format", "png", "--out", folder],
                    database: database.url)
                #expect(try await process.ended(within: .seconds(120)) == 0, "\(process.output)")
                for size in ["60 by 60", "600 by 600"] {
                    #expect(process.output.contains(size), "\(process.output)")
                }
                for name in ["thumbnail.png", "picture.png"] {
                    let file = try Data(contentsOf: URL(filePath: "\(folder)/\(name)"))
                    #expect(file.starts(with: [0x89, 0x50, 0x4e, 0x47]), "\(name)")
                }
            }
            try await Self.withFile(Array("no picture".utf8), "notes.txt") { path in
                let process = try MillraceProcess(
                    ["media", "process", path, "--strip", "--wait"], database: database.url)
                #expect(try await process.ended(within: .seconds(120)) == 8, "\(process.output)")
                #expect(process.output.contains("reason  unsupported"), "\(process.output)")
            }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
        }
    }

    @Test func `a machine without the programs says so, and lets documents wait`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let worker = try await MillraceProcess.worker(
                "bare", database: database.url, environment: ["MILLRACE_CHILDREN": "/nonexistent"])
            #expect(worker.output.contains("documents are not read here: programs are missing"))
            #expect(
                try await connection.int(
                    "select count(*) from millrace.session s join millrace.kind k on k.id = any (s.kinds) where k.name like 'document.%'"
                ) == 0)
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            let doctor = try MillraceProcess(["doctor", "--json"], database: database.url)
            _ = try await doctor.ended()
            #expect(doctor.output.contains(#""check": "sandbox""#) && doctor.output.contains(#""check": "documents""#))
            await connection.close()
        }
    }
}
