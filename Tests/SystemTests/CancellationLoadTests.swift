import Foundation
import TestSupport
import Testing

/// `load cancellations` in its own process, whose CPU time is that of the workers that it cancels.
@Suite struct CancellationLoadTests {
    @Test func `workers that are cancelled with the database up, away and returning end in order and lose nothing`()
        async throws
    {
        let process = try MillraceProcess(["load", "cancellations", "--rounds", "6", "--jobs", "20"], database: "")
        let code = try await process.ended(within: .seconds(900))
        #expect(code == 0, "\(process.output)")
        #expect(!process.output.contains("missed"), "\(process.output)")
    }
}
