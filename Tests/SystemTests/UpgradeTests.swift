import Foundation
import TestSupport
import Testing

@Suite struct UpgradeTests {
    /// This program stands in for the older version; operators rehearse with a real older one.
    @Test(.serialized, arguments: Template.hasRooms ? [[], ["--rooms", "all"]] : [[]])
    func `the rehearsal of an upgrade loses nothing, and says who did what`(rooms: [String]) async throws {
        let process = try MillraceProcess(
            ["load", "upgrade", "--old", MillraceProcess.executable.path, "--seconds", "9", "--rate", "100", "--json"]
                + rooms,
            database: "")
        #expect(try await process.ended(within: .seconds(600)) == 0, "\(process.output)")
        #expect(process.output.contains(#""lost": 0"#), "\(process.output)")
    }

    @Test func `a rehearsal without an older program is refused`() async throws {
        let none = try MillraceProcess(["load", "upgrade"], database: "")
        #expect(try await none.ended() == 2)
        let missing = try MillraceProcess(["load", "upgrade", "--old", "/nowhere/millrace"], database: "")
        #expect(try await missing.ended() == 2)
        #expect(missing.output.contains("/nowhere/millrace"))
    }
}
