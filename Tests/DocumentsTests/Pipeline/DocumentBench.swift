import Blobs
import Documents
import Foundation
import Pages
import Postgres
import Telemetry
import TestSupport
import Testing
import Workers

/// A database, its blobs, and a worker that reads documents.
struct DocumentBench: Sendable {
    let connection: Connection
    let store: any BlobStore

    @discardableResult
    func submit(_ bytes: [UInt8], _ more: String = "") async throws -> String {
        let blob = try await store.put(bytes)
        return try #require(
            try await connection.value(
                "millrace.document_register('blob:\(blob)'\(more.isEmpty ? "" : ", \(more)"))"))
    }

    /// Its status and reason, once it has ended.
    func ended(_ id: String) async throws -> String {
        try await eventually("document \(id) has ended: \(try await self.line(id))") {
            try await connection.bool(
                "select status not in ('uploading', 'processing') from millrace.documents where id = '\(id)'")
        }
        return try await line(id)
    }

    private func line(_ id: String) async throws -> String {
        try await connection.value("select concat_ws(' ', status, reason) from millrace.documents where id = '\(id)'")
            ?? "gone"
    }

    func read(_ bytes: [UInt8], _ more: String = "") async throws -> (id: String, ended: String) {
        let id = try await submit(bytes, more)
        return (id, try await ended(id))
    }

    func text(_ id: String) async throws -> String {
        try await connection.value("millrace.document_text('\(id)')") ?? ""
    }

    func pages(_ id: String) async throws -> [String] {
        try await connection.column(
            "select concat_ws(' ', page, status, reason) from millrace.document_pages where document = '\(id)' order by page"
        )
    }

    func output(_ id: String, _ kind: String) async throws -> [UInt8] {
        let hex = try await connection.value(
            "select encode(blob, 'hex') from millrace.document_output_of('\(id)', '\(kind)')")
        return try await store.get(try #require(hex.flatMap { BlobID($0) }))
    }

    /// How many runs of a kind there were.
    func runs(_ kind: String) async throws -> Int {
        try await connection.int(
            "select count(*) from millrace.history h join millrace.kind k on k.id = h.kind where k.name = '\(kind)'")
    }
}

func withDocuments(
    _ change: (inout DocumentPrograms, inout DocumentService.Options) -> Void = { _, _ in }, works: Bool = true,
    log: Log = .silent,
    fetch: @escaping DocumentService.Fetch = { _, _, _ in
        throw DocumentFailure(DocumentRefusal(.unsupported, "nothing is fetched here"))
    }, _ body: (DocumentBench) async throws -> Void
) async throws {
    var (shop, options) = (workshop, DocumentService.Options())
    change(&shop, &options)
    let (own, chosen) = (shop, options)
    try await withDatabase { database in
        let connection = try await database.connect()
        let pool = Pool(database.options, size: 6)
        let store = BlobPlace.postgres.store(pool: pool)
        let room = DocumentService(
            pool: pool, store: store, workshop: own, options: chosen,
            fetch: fetch, log: log)
        let media = MediaService(pool: pool, store: store, programs: own, folder: "/tmp", log: log)
        var handlers = DocumentService.kinds.map { kind in
            Handler(kind: kind, queue: DocumentService.queue(of: kind)) { args, context in
                try await room.run(args, context)
            }
        }
        handlers.append(
            Handler(kind: MediaService.kind, queue: MediaService.queue) { args, context in
                try await media.run(args, context)
            })
        let worker = JobWorker(
            options: JobWorker.Options(database: database.options, name: "test"), handlers: handlers, log: .silent)
        let bench = DocumentBench(connection: connection, store: store)
        let outcome: Result<Void, any Error>
        if works {
            outcome = try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { _ = try await worker.run() }
                let outcome: Result<Void, any Error>
                do { outcome = .success(try await body(bench)) } catch { outcome = .failure(error) }
                worker.drain()
                try await group.waitForAll()
                return outcome
            }
        } else {
            do { outcome = .success(try await body(bench)) } catch { outcome = .failure(error) }
        }
        await room.idleEngines.close()
        await pool.close()
        await connection.close()
        try outcome.get()
    }
}

/// A page with enough on it to be read, and a number to be told by.
func numberedPage(_ number: Int) -> [UInt8] {
    let lines = [
        "The engine of the mountain railway was built of copper and timber,",
        "and every station had a clock, a garden and a bench.",
        "This is page number \(number) of the report on carriages.",
    ]
    let text = lines.map { "(\($0)) Tj T*" }.joined(separator: " ")
    return pdf([
        "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 480 160]/Contents 4 0 R"
            + "/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
        stream("", "BT /F 13 Tf 30 110 Td 24 TL \(text) ET"),
    ])
}

/// The page as a scanner would deliver it.
func scan(_ number: Int) async throws -> Raster {
    try await withFile(numberedPage(number)) { file in
        let inspection = try await workshop.probe(file).value
        return try await workshop.raster(file, inspection, page: 1).value
    }
}

func scannedPNG(_ number: Int) async throws -> [UInt8] {
    let raster = try await scan(number)
    let rows = (0..<raster.height).map { row in
        Array(raster.pixels[(raster.pixels.startIndex + row * raster.width)...].prefix(raster.width))
    }
    return png(width: raster.width, height: raster.height, rows: rows)
}

/// A PDF of pictures alone, with pages that say their text themselves where `own` says so, and with a stamp on those of `stamped`.
func scannedPDF(_ numbers: [Int], own: Set<Int> = [], stamped: Set<Int> = [], hidden: String = "") async throws
    -> [UInt8]
{
    var objects: [[UInt8]] = [
        Array("<</Type/Catalog/Pages 2 0 R>>".utf8),
        Array(
            "<</Type/Pages/Kids[\(numbers.indices.map { "\(3 + 3 * $0) 0 R" }.joined(separator: " "))]/Count \(numbers.count)>>"
                .utf8),
    ]
    for (index, number) in numbers.enumerated() {
        let at = 3 + 3 * index
        let resources = "<</XObject<</I \(at + 2) 0 R>>/Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
        objects.append(
            Array(
                "<</Type/Page/Parent 2 0 R/MediaBox[0 0 480 160]/Contents \(at + 1) 0 R/Resources\(resources)>>".utf8))
        if own.contains(number) {
            objects.append(Array(stream("", "BT /F 24 Tf 30 100 Td (Page \(number) says it itself) Tj ET").utf8))
            objects.append(Array("null".utf8))
            continue
        }
        let raster = try await scan(number)
        let stamp = stamped.contains(number) ? " BT /F 11 Tf 300 140 Td (Received on Monday) Tj ET" : ""
        objects.append(Array(stream("", "\(hidden)q 480 0 0 160 0 0 cm /I Do Q\(stamp)").utf8))
        let head =
            "<</Type/XObject/Subtype/Image/Width \(raster.width)/Height \(raster.height)/ColorSpace/DeviceGray"
            + "/BitsPerComponent 8/Length \(raster.pixels.count)>>\nstream\n"
        objects.append(Array(head.utf8) + Array(raster.pixels) + Array("\nendstream".utf8))
    }
    var out = Array("%PDF-1.7\n".utf8)
    var offsets: [Int] = []
    for (index, object) in objects.enumerated() {
        offsets.append(out.count)
        out += Array("\(index + 1) 0 obj\n".utf8) + object + Array("\nendobj\n".utf8)
    }
    let start = out.count
    out += Array("xref\n0 \(objects.count + 1)\n0000000000 65535 f \n".utf8)
    for offset in offsets {
        out += Array((String(repeating: "0", count: 10 - String(offset).count) + "\(offset) 00000 n \n").utf8)
    }
    return out + Array("trailer<</Size \(objects.count + 1)/Root 1 0 R>>\nstartxref\n\(start)\n%%EOF\n".utf8)
}
