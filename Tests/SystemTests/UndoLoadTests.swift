import Foundation
import TestSupport
import Testing

/// `load undo` on a small scale: workers run, an operation cancels a queue and is undone, and each job is judged by plain SQL.
@Suite struct UndoLoadTests {
    @Test func `every job of an undone operation is as before, has gone on from there, or is listed as moved on`()
        async throws
    {
        try await withDatabase { database in
            let process = try MillraceProcess(["load", "undo", "--jobs", "3000", "--strict"], database: database.url)
            let code = try await process.ended(within: .seconds(900))
            #expect(code == 0, "\(process.output)")
            #expect(!process.output.contains("missed"), "\(process.output)")
        }
    }
}
