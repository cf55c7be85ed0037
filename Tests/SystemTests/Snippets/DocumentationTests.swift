import Foundation
import Testing

/// Pages that lead to each other, and a first page that is short enough to be read.
@Suite struct DocumentationTests {
    private static func text(_ page: String) throws -> String {
        try String(contentsOf: Snippet.root.appending(path: page), encoding: .utf8)
    }

    private static func pages() throws -> [String] {
        try Snippet.pages() + [
            "CONTRIBUTING.md", "Sources/ARCHITECTURE.md", "CHANGELOG.md", "sql/locks.md", "sql/storage.md",
            ".github/SECURITY.md",
        ]
    }

    /// What a heading is called behind `#`.
    private static func anchors(of text: String) -> Set<String> {
        let headings = text.split(separator: "\n").filter { $0.hasPrefix("#") }
        return Set(
            headings.map { heading in
                heading.drop { $0 == "#" || $0 == " " }.lowercased()
                    .filter { $0.isLetter || $0.isNumber || " -_".contains($0) }.replacing(" ", with: "-")
            })
    }

    @Test func `the first page is short`() throws {
        #expect(try Self.text("README.md").split(separator: "\n", omittingEmptySubsequences: false).count <= 250)
    }

    @Test func `every link leads to a page, and to a heading of it`() throws {
        var links = 0
        for page in try Self.pages() {
            let folder = Snippet.root.appending(path: page).deletingLastPathComponent()
            for match in try Self.text(page).matches(of: /\]\(([^)\s]+)\)/) {
                let parts = match.1.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                guard !match.1.contains("://"), !match.1.hasPrefix("mailto:") else { continue }
                links += 1
                let target = parts[0].isEmpty ? Snippet.root.appending(path: page) : folder.appending(path: parts[0])
                #expect(FileManager.default.fileExists(atPath: target.path), "\(page) leads to \(match.1)")
                guard parts.count == 2, let there = try? String(contentsOf: target, encoding: .utf8) else { continue }
                #expect(Self.anchors(of: there).contains(String(parts[1])), "\(page) leads to \(match.1)")
            }
        }
        #expect(links > 80)
    }

    @Test func `every guide for Swift stands on its first page and leads to pages that are there`() throws {
        let pages = try Snippet.pages().filter { $0.contains(".docc/") }
        func name(_ page: String) -> String { URL(filePath: page).deletingPathExtension().lastPathComponent }
        let names = Set(pages.map(name)).subtracting(["Millrace"])
        #expect(names.count >= 6 && names.count == pages.count - 1)
        for page in pages {
            let linked = Set(try Self.text(page).matches(of: /<doc:([A-Za-z]+)>/).map { String($0.1) })
            #expect(linked.subtracting(names).isEmpty, "\(page)")
            if name(page) == "Millrace" { #expect(linked == names) }
        }
    }

    @Test func `the guides are all on the index`() throws {
        let index = try Self.text("deploy/README.md")
        for page in try Snippet.pages() where page.hasPrefix("deploy/guides/") {
            #expect(index.contains("(\(page.dropFirst("deploy/".count)))"), "\(page)")
        }
    }
}
