import Foundation
import Testing

@testable import MillraceCommand

@Suite struct WakerChannelTests {
    /// A room that notifies on a channel of its own would not be heard behind a waker.
    @Test func `a waker listens on each channel that the schema notifies`() throws {
        let sql = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../sql").standardized
        let files = try FileManager.default.subpathsOfDirectory(atPath: sql.path).filter { $0.hasSuffix(".sql") }
        var notified: Set<String> = []
        for file in files {
            let text = try String(contentsOf: sql.appending(path: file), encoding: .utf8)
            for call in text.matches(of: /pg_notify\('([a-z_]+)'/) { notified.insert(String(call.output.1)) }
        }
        // Callers alone listen for ends.
        #expect(notified.subtracting(["millrace_ends"]) == Set(WakerService.channels))
    }
}
