import Foundation
import Testing

/// What Sources/ARCHITECTURE.md says is there: a walk through the code that leads nowhere is worse than none.
@Suite struct ArchitectureTests {
    /// `file: name`, as a hop of a walk gives it; the file by its last components. Behind an arrow it is named in the file of the hop before.
    private struct Hop: CustomStringConvertible {
        let file: String
        let name: String
        var isCalled = false
        var description: String { "\(file): \(name)" }
    }

    private static let page = "Sources/ARCHITECTURE.md"

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: Snippet.root.appending(path: path), encoding: .utf8)
    }

    /// Paths of sources, SQL and documents, from the root of the project.
    private static func files() throws -> [String] {
        var all: [String] = []
        for folder in ["Sources", "sql", "deploy", "Tests"] {
            let root = Snippet.root.appending(path: folder)
            let found = try #require(FileManager.default.enumerator(atPath: root.path))
            for case let path as String in found where path.hasSuffix(".swift") || path.hasSuffix(".sql") {
                all.append("\(folder)/\(path)")
            }
        }
        return all
    }

    private static func files(named name: String, in all: [String]) -> [String] {
        all.filter { $0 == name || $0.hasSuffix("/\(name)") }
    }

    /// Whether a name stands somewhere as a word of its own.
    private static func has(_ text: String, _ name: String) -> Bool {
        var rest = text[...]
        while let found = rest.firstRange(of: name) {
            let before = found.lowerBound == text.startIndex ? nil : text[text.index(before: found.lowerBound)]
            let after = found.upperBound == text.endIndex ? nil : text[found.upperBound]
            let isWord = { (letter: Character?) in letter.map { $0.isLetter || $0.isNumber || $0 == "_" } ?? false }
            if !isWord(before), !isWord(after) { return true }
            rest = text[found.upperBound...]
        }
        return false
    }

    private static func hops(in text: some StringProtocol) -> [Hop] {
        String(text).matches(of: /(→ )?`([A-Za-z0-9_+\/]+\.(?:swift|sql)): ([A-Za-z0-9_.]+)`/).map {
            Hop(file: String($0.2), name: String($0.3), isCalled: $0.1 != nil)
        }
    }

    /// Hops behind an arrow that the file of the hop before does not name.
    private static func uncalled(_ hops: [Hop], in all: [String]) throws -> [String] {
        try zip(hops, hops.dropFirst()).filter { before, hop in
            guard hop.isCalled else { return false }
            return try !files(named: before.file, in: all).contains { try has(text($0), hop.name) }
        }.map { "\($0) → \($1)" }
    }

    private static func missing(_ hops: [Hop], in all: [String]) throws -> [String] {
        try hops.filter { hop in
            try !files(named: hop.file, in: all).contains { try has(text($0), hop.name) }
        }.map(\.description)
    }

    @Test func `each hop of a walk names a file and something in it`() throws {
        let all = try Self.files()
        let walks = try Self.text(Self.page).split(separator: "\n### ").filter { $0.hasPrefix("Walk: ") }
        #expect(walks.count == 5)
        #expect(walks.flatMap { Self.hops(in: $0) }.count { $0.isCalled } > 20)
        for walk in walks {
            let hops = Self.hops(in: walk.split(separator: "\n## ")[0])
            #expect((5...15).contains(hops.count), "\(walk.prefix(40)): \(hops.count) hops")
            #expect(try Self.missing(hops, in: all) == [])
            #expect(try Self.uncalled(hops, in: all) == [])
        }
    }

    @Test func `everything that the page names with its file is there`() throws {
        let all = try Self.files()
        let page = try Self.text(Self.page)
        #expect(try Self.missing(Self.hops(in: page), in: all) == [])
        let named = Set(page.matches(of: /`([A-Za-z0-9_+\/]+\.(?:swift|sql))`/).map { String($0.1) })
        #expect(named.count > 20)
        #expect(named.filter { Self.files(named: $0, in: all).isEmpty }.sorted() == [])
    }

    @Test func `a name that is not there is found`() throws {
        let all = try Self.files()
        let hop = Hop(file: "ArchitectureTests.swift", name: "no" + "SuchName")
        #expect(try Self.missing([hop], in: all) == [hop.description])
        #expect(try Self.missing([Hop(file: "NoSuchFile.swift", name: "Hop")], in: all).count == 1)
        #expect(try Self.missing([Hop(file: "ArchitectureTests.swift", name: "Hop")], in: all) == [])
        let before = Hop(file: "StoppedClock.swift", name: "stopClock")
        let called = [
            Hop(file: "x.swift", name: "run", isCalled: true), Hop(file: "x.swift", name: "Hop", isCalled: true),
        ]
        #expect(try called.map { try Self.uncalled([before, $0], in: all).count } == [0, 1])
    }
}
