import Foundation
import Testing

@Suite struct DoorGuideTests {
    /// A line of the threat model without a test that shows it is a wish.
    @Test func `every suite that the threat model names is there`() throws {
        let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let page = try String(
            contentsOf: tests.appending(path: "../deploy/guides/threat-model.md"), encoding: .utf8)
        let named = Set(page.matches(of: /`([A-Z][A-Za-z]+Tests)`/).map { String($0.1) })
        #expect(named.count > 20)
        var suites: Set<String> = []
        for file in FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil)?.allObjects ?? [] {
            guard let file = file as? URL, file.pathExtension == "swift" else { continue }
            let source = try String(contentsOf: file, encoding: .utf8)
            suites.formUnion(source.matches(of: /struct ([A-Z][A-Za-z]+Tests)/).map { String($0.1) })
        }
        #expect(named.subtracting(suites).isEmpty)
        // Each rule has a test.
        for line in page.split(separator: "\n") where line.hasPrefix("| ") && line.contains(". |") {
            #expect(line.contains("Tests`") || line.contains("`millrace load"), "\(line)")
        }
    }
}
