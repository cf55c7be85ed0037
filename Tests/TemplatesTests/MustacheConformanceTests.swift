import Foundation
import Templates
import Testing

/// The public specification's own cases, where MILLRACE_CONFORMANCE names a directory with them.
@Suite struct MustacheConformanceTests {
    struct Module: Decodable {
        var tests: [Case]
    }
    struct Case: Decodable {
        var name: String
        var template: String
        var expected: String
        var partials: [String: String]?
    }

    static let directory = ProcessInfo.processInfo.environment["MILLRACE_CONFORMANCE"].map { $0 + "/mustache" }
    static let skip: Comment =
        "SKIPPED: MILLRACE_CONFORMANCE is not set, and the specification's cases are not in this repository"

    @Test(.enabled(if: directory != nil, skip))
    func `every case of the specification renders byte for byte`() throws {
        let directory = URL(filePath: try #require(Self.directory))
        let files = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
            .filter { $0.pathExtension == "json" }.sorted { $0.path < $1.path }
        var seen = 0
        for file in files {
            let bytes = Array(try Data(contentsOf: file))
            let cases = try JSONDecoder().decode(Module.self, from: Data(bytes)).tests
            // The data once more, by our own reader: numbers keep their digits there.
            guard case .list(let values)? = try TemplateValue(json: bytes)["tests"] else {
                Issue.record("\(file.lastPathComponent) has no tests")
                continue
            }
            for (one, value) in zip(cases, values) {
                seen += 1
                let template = try Template(one.template)
                let found = try template.render(value["data"] ?? .null, partials: Partials(one.partials ?? [:]))
                #expect(
                    String(decoding: found, as: UTF8.self) == one.expected, "\(file.lastPathComponent): \(one.name)")
            }
        }
        #expect(seen >= 184)
    }
}
