import Documents
import Foundation
import Synchronization
import Telemetry
import TestSupport
import Testing

/// How many of the kernel's protections the children have.
enum KernelProtections: String, CaseIterable, CustomStringConvertible {
    case all
    /// A filter that they inherit refuses them namespaces and Landlock, as some kernels and containers do.
    case fewer

    var description: String { rawValue }

    /// The bits of `CCage` for the refused layers.
    var refused: UInt32 { self == .all ? 0 : 8 | 16 }

    /// The folder of the children, or one whose programs become them behind the filter.
    func withChildren<Result>(_ body: (String) async throws -> Result) async throws -> Result {
        guard self == .fewer else { return try await body(workshop.children) }
        let folder = NSTemporaryDirectory() + "millrace-protections-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for name in try FileManager.default.contentsOfDirectory(atPath: workshop.children)
        where name.hasPrefix("millrace-") && !name.contains(".") {
            let script = """
                #!/bin/sh
                exec '\(workshop.children)/Prisoner' refuse-layers '\(workshop.children)/\(name)' "$@"

                """
            let path = folder + "/" + name
            try Data(script.utf8).write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        }
        return try await body(folder)
    }
}

/// What a room has warned of.
final class Warnings: Sendable {
    private let lines = Mutex<[String]>([])

    var log: Log {
        Log(threshold: .warning) { line in self.lines.withLock { $0.append(line.text) } }
    }

    func contains(_ words: String...) -> Bool {
        lines.withLock { lines in lines.contains { line in words.allSatisfy { line.contains($0) } } }
    }
}

/// The active elements in a file that was made from another one; with qpdf's names in its JSON.
func active(in pdf: [UInt8]) async throws -> [String] {
    let json = try await withPath(pdf) { try await Program.run("qpdf", ["--json", $0]) }
    try #require(json.status == 0, "what was made is no sound PDF")
    let text = json.text
    return [
        "JavaScript", "JS", "Launch", "EmbeddedFile", "EmbeddedFiles", "EF", "AA", "OpenAction", "XFA", "GoToR",
        "GoToE", "SubmitForm", "ImportData", "RichMedia", "ByteRange",
    ].filter { text.contains("\"/\($0)\"") }
}
