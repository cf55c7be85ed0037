import TestSupport
import Testing

/// The proofs of the gateway, small: each by the command with which anybody can repeat them at their full size.
@Suite struct GatewayProofTests {
    private static func load(_ words: [String], environment: [String: String] = [:]) async throws -> (
        code: Int32, said: String
    ) {
        try await withDatabase { database in
            let process = try MillraceProcess(["load"] + words, database: database.url, environment: environment)
            let code = try await process.ended(within: .seconds(600))
            return (code, process.output)
        }
    }

    @Test func `people who call at random never get what is another tenant's or person's`() async throws {
        let (code, said) = try await Self.load(
            ["gateway-isolation", "--users", "20", "--calls", "40", "--doors", "400", "--strict"])
        #expect(code == 0, "\(said)")
    }

    @Test(arguments: ["documents", "people"]) func `the search notices a right that is missing`(right: String)
        async throws
    {
        let (code, said) = try await Self.load(
            ["gateway-isolation", "--users", "20", "--calls", "15", "--doors", "0", "--break", right, "--strict"])
        #expect(code == 1 && (said.contains("came back") || said.contains("a stranger's call was answered")), "\(said)")
    }

    @Test func `offline batches end alike in any order, by two devices at once, while the gateway is killed`()
        async throws
    {
        let (code, said) = try await Self.load(["gateway-offline", "--runs", "24", "--kills", "2", "--strict"])
        #expect(code == 0, "\(said)")
    }

    @Test func `calls are measured, and every one of them is answered`() async throws {
        let (code, said) = try await Self.load(
            ["gateway-calls", "--connections", "4", "--seconds", "1", "--rounds", "1", "--json"])
        #expect(code == 0 && said.contains("\"share_of_direct\""), "\(said)")
    }

    private struct Greedy: Decodable {
        let callers: Int
    }

    @Test func `whatever one person or visitor floods, every call of another is answered, on few connections`()
        async throws
    {
        try await withDatabase { database in
            let (report, _) = try await LoadTimeTests.load(
                ["greedy", "--seconds", "1", "--callers", "12"], database: database, as: Greedy.self)
            // How long a call took says nothing here.
            let counted = report.bars.filter { !$0.what.hasSuffix("p99") }
            #expect(counted.count == 14, "thirteen floods, and the connections")
            for bar in counted { #expect(bar.met, "\(bar.what): \(bar.measured), \(bar.bar)") }
        }
    }

    @Test func `slow readers and idle connections are held, and jobs are done beside them`() async throws {
        let (code, said) = try await Self.load(
            [
                "gateway-slow", "--idle", "60", "--slow", "10", "--rounds", "1", "--drain", "1000", "--seconds", "5",
                "--json",
            ])
        #expect(code == 0 && said.contains("\"held\""), "\(said)")
    }
}
