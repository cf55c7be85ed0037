import Foundation

/// A block of code on a page for readers: the word after the fence is its language.
struct Snippet: Sendable, CustomStringConvertible {
    let page: String
    let line: Int
    let language: String
    let text: String
    /// Swift that the page leaves out: what stands in a comment `<!-- given … -->` right before the block.
    let given: String

    var description: String { "\(page):\(line)" }

    /// A manifest stands beside the example that it is of, and is compared with it elsewhere.
    var isManifest: Bool { text.hasPrefix("// swift-tools-version") }

    /// `-- as: client anna` in the first line of a block of SQL names the role that runs it.
    var role: [String]? {
        head?.split(separator: ",")[0].split(separator: " ").map(String.init)
    }

    /// `-- as: worker, refused with 55000`: the block shows what is not allowed.
    var refusal: String? {
        guard let head, let words = head.firstRange(of: ", refused with ") else { return nil }
        return String(head[words.upperBound...])
    }

    private var head: Substring? {
        guard let first = text.split(separator: "\n").first, first.hasPrefix("-- as: ") else { return nil }
        return first.dropFirst(7)
    }

    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    static func of(_ page: String) throws -> [Snippet] {
        let text = try String(contentsOf: root.appending(path: page), encoding: .utf8)
        var all: [Snippet] = []
        var open: (line: Int, language: String, lines: [Substring])?
        var given: [Substring] = []
        var isGiven = false
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if isGiven {
                if line == "-->" { isGiven = false } else { given.append(line) }
            } else if let block = open {
                if line == "```" {
                    all.append(
                        Snippet(
                            page: page, line: block.line, language: block.language,
                            text: block.lines.joined(separator: "\n"), given: given.joined(separator: "\n")))
                    (open, given) = (nil, [])
                } else {
                    open?.lines.append(line)
                }
            } else if line.hasPrefix("```") {
                open = (index + 1, String(line.dropFirst(3)), [])
            } else if line == "<!-- given" {
                isGiven = true
            }
        }
        return all
    }

    /// Every page that is written for readers.
    static func pages() throws -> [String] {
        var pages = ["README.md", "deploy/README.md", "sql/README.md"]
        for folder in ["deploy/guides", "Sources/Faces/Millrace/Millrace.docc"] {
            let files = (try? FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path)) ?? []
            pages += files.filter { $0.hasSuffix(".md") }.sorted().map { "\(folder)/\($0)" }
        }
        return pages.filter { FileManager.default.fileExists(atPath: root.appending(path: $0).path) }
    }

    static func all() throws -> [Snippet] { try pages().flatMap { try of($0) } }
}
