import Foundation
import TestSupport

/// The Swift of the pages, each block in its own function, compiled with the modules of this build.
enum Compiled {
    static func errors(of snippets: [Snippet]) async throws -> String {
        let folder = FileManager.default.temporaryDirectory.appending(path: "millrace-snippets-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var files: [String] = []
        for (index, snippet) in snippets.enumerated() {
            let file = folder.appending(path: "Snippet\(index).swift").path
            try source(of: snippet, index).write(toFile: file, atomically: true, encoding: .utf8)
            files.append(file)
        }
        let products = MillraceProcess.executable.deletingLastPathComponent()
        var arguments = [
            "-typecheck", "-swift-version", "6", "-module-name", "Snippets", "-I",
            products.appending(path: "Modules").path,
        ]
        for module in try FileManager.default.contentsOfDirectory(
            atPath: Snippet.root.appending(path: "Sources/System").path)
        where module.hasPrefix("C") {
            let own = Snippet.root.appending(path: "Sources/System/\(module)/module.modulemap").path
            let made = products.appending(path: "\(module).build/module.modulemap").path
            for map in [own, made] where FileManager.default.fileExists(atPath: map) {
                arguments += ["-Xcc", "-fmodule-map-file=\(map)"]
            }
        }
        for word in try await Program.check("pkg-config", ["--cflags-only-I", "libpq"]).split(
            whereSeparator: \.isWhitespace)
        {
            arguments += ["-Xcc", String(word)]
        }
        let outcome = try await Program.run("swiftc", arguments + files, errors: true)
        return outcome.status == 0
            ? "" : outcome.text.split(separator: "\n").filter { $0.contains("error:") }.joined(separator: "\n")
    }

    /// The compiler's errors name the page and the line.
    private static func source(of snippet: Snippet, _ index: Int) -> String {
        var imports = ["import Millrace"]
        var lines: [String] = []
        for line in snippet.text.split(separator: "\n", omittingEmptySubsequences: false) {
            let isImport = line.hasPrefix("import ")
            if isImport { imports.append(String(line)) }
            lines.append(isImport ? "" : String(line))
        }
        return """
            \(imports.joined(separator: "\n"))
            \(snippet.given)
            private func snippet\(index)() async throws {
            #sourceLocation(file: "\(snippet.page)", line: \(snippet.line + 1))
            \(lines.joined(separator: "\n"))
            #sourceLocation()
            }
            """
    }
}
