import Foundation
import TestSupport
import Testing

@testable import MillraceCommand

/// The constants of the guide are those that were measured.
@Suite struct CapacityTests {
    private static let deploy = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "deploy")

    /// Of several rounds, the last.
    private static func value(_ path: Substring, in json: JSONValue) -> Double? {
        var value = json
        for name in path.split(separator: ".") {
            if let last = value.items?.last { value = last }
            guard let member = value[String(name)] else { return nil }
            value = member
        }
        return switch value {
        case .int(let number): Double(number)
        case .double(let number): number
        case .number(let text): Double(text)
        case .null, .bool, .string, .array, .object, .raw: nil
        }
    }

    @Test func `each constant of the guide is that of the raw output`() throws {
        let guide = try String(contentsOf: Self.deploy.appending(path: "guides/capacity.md"), encoding: .utf8)
        let rows = guide.matches(of: /\| ([0-9][0-9,.]*) [a-zA-Zµ ]+ \| `([a-z0-9-]+): ([a-z_.]+)` \|/)
        #expect(rows.count == 10)
        for row in rows {
            let (_, said, file, path) = row.output
            let raw = try Data(contentsOf: Self.deploy.appending(path: "bench/results.d/\(file).json"))
            let json = try JSONValue.read(Array(raw))
            let measured = try #require(Self.value(path, in: json["figures"] ?? json), "\(file): \(path)")
            let number = try #require(Double(said.replacing(",", with: "")))
            #expect(abs(measured - number) / measured < 0.02, "\(file): \(path) is \(measured)")
        }
    }
}
