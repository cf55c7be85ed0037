import Documents
import Foundation
import Pages
import Sandbox
import Testing

/// The programs beside the tests.
let workshop: DocumentPrograms = {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    let beside = (Bundle.main.executableURL?.deletingLastPathComponent().path ?? "") + "/millrace-probe"
    let isBeside = FileManager.default.isExecutableFile(atPath: beside)
    var workshop = DocumentPrograms(
        environment: ProcessInfo.processInfo.environment,
        beside: isBeside ? beside : root.appendingPathComponent(".build/debug/millrace-probe").path)
    workshop.niceness = 10  // the tests beside want the processor all the time
    return workshop
}()

/// A file without a name.
func withFile<Result>(_ bytes: [UInt8], _ body: (Int32) async throws -> Result) async throws -> Result {
    let path = NSTemporaryDirectory() + "millrace-\(UUID().uuidString)"
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    try #require(descriptor >= 0)
    unlink(path)
    defer { close(descriptor) }
    try bytes.withUnsafeBytes { buffer in
        var written = 0
        while written < buffer.count {
            let count = pwrite(
                descriptor, (try #require(buffer.baseAddress)) + written, buffer.count - written, off_t(written))
            try #require(count > 0)
            written += count
        }
    }
    return try await body(descriptor)
}

func bytes(of descriptor: Int32) -> [UInt8] {
    var about = stat()
    fstat(descriptor, &about)
    return [UInt8](unsafeUninitializedCapacity: Int(about.st_size)) { buffer, count in
        count = max(0, pread(descriptor, buffer.baseAddress, buffer.count, 0))
    }
}

func outcome<Value>(_ body: () async throws -> Value) async -> Result<Value, DocumentFailure> {
    do {
        return .success(try await body())
    } catch let failure as DocumentFailure {
        return .failure(failure)
    } catch {
        return .failure(DocumentFailure(DocumentRefusal(.internal, "\(error)")))
    }
}

/// A PDF written down by hand.
func pdf(_ objects: [String], trailer: String = "/Root 1 0 R") -> [UInt8] {
    var out = Array("%PDF-1.7\n".utf8)
    var offsets: [Int] = []
    for (index, object) in objects.enumerated() {
        offsets.append(out.count)
        out += Array("\(index + 1) 0 obj\n\(object)\nendobj\n".utf8)
    }
    let start = out.count
    out += Array("xref\n0 \(objects.count + 1)\n0000000000 65535 f \n".utf8)
    for offset in offsets {
        out += Array((String(repeating: "0", count: 10 - String(offset).count) + "\(offset) 00000 n \n").utf8)
    }
    return out + Array("trailer<</Size \(objects.count + 1)\(trailer)>>\nstartxref\n\(start)\n%%EOF\n".utf8)
}

func stream(_ dictionary: String, _ data: String) -> String {
    "<<\(dictionary)/Length \(data.utf8.count)>>\nstream\n\(data)\nendstream"
}

/// One page that says hello, with more in its catalogue, itself or behind it.
func hello(catalogue: String = "", page: String = "", more: [String] = []) -> [UInt8] {
    pdf(
        [
            "<</Type/Catalog/Pages 2 0 R\(catalogue)>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R"
                + "/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>\(page)>>",
            stream("", "BT /F 24 Tf 72 700 Td (Hello out there) Tj ET"),
        ] + more)
}

/// 10^12 drawings in 3 KB.
let endlessForms = pdf(
    [
        "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</XObject<</A 5 0 R>>>>>>",
        stream("", "/A Do"),
    ]
        + (0..<12).map { level in
            stream(
                "/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</XObject<</A \(6 + level) 0 R>>>>",
                String(repeating: "/A Do ", count: 10))
        } + [stream("/Type/XObject/Subtype/Form/BBox[0 0 595 842]", "0 0 5 5 re f")])
