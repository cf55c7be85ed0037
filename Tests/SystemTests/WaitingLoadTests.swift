import Foundation
import TestSupport
import Testing

/// `load waiting --part undo` as it is started by hand, with fewer orders.
@Suite struct WaitingLoadTests {
    @Test func `money of orders is kept or given back once, while workers are killed`() async throws {
        try await withDatabase { database in
            let process = try MillraceProcess(
                ["load", "waiting", "--part", "undo", "--orders", "40", "--kills", "6", "--strict"],
                database: database.url)
            let code = try await process.ended(within: .seconds(300))
            #expect(code == 0, "\(process.output)")
            #expect(process.output.contains("retried"), "\(process.output)")
        }
    }
}
