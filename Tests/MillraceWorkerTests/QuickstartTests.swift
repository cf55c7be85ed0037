import Foundation
import Testing

/// The README shows the code in deploy/examples, which is built with the project.
@Suite struct QuickstartTests {
    private static func read(_ path: String) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    @Test(arguments: ["Package.swift", "Sources/shop-worker/main.swift"])
    func `the README shows the example, file by file`(file: String) throws {
        let example = try Self.read("deploy/examples/shop/\(file)").replacing("../../..", with: "../millrace")
        #expect(try Self.read("README.md").contains("```swift\n\(example)```"))
    }

    @Test func `every document with a first worker names the product that serves all rooms`() throws {
        for file in ["README.md", "deploy/README.md", "deploy/millrace.env.example"] {
            #expect(try Self.read(file).contains(file.hasSuffix("example") ? "CompleteWorker" : "MillraceWorker"))
        }
    }
}
