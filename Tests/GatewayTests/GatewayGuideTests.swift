import Foundation
import JSON
import TestSupport
import Testing

/// What the gateway's guide shows is what the gateway does.
@Suite(.timeLimit(.minutes(10))) struct GatewayGuideTests {
    private static func guide() throws -> String {
        try String(
            contentsOf: URL(filePath: #filePath).appending(path: "../../../deploy/guides/gateway.md")
                .standardizedFileURL,
            encoding: .utf8)
    }

    @Test func `each call that the guide shows is taken, from the first check-in on`() async throws {
        let lines = try Self.guide().replacing("\\\n", with: " ").split(separator: "\n").filter { $0.hasPrefix("$ ") }
        let calls = Locked(0)
        try await GatewayWorld.with { world in
            for line in lines {
                if line.hasPrefix("$ millrace checkins contacts ada --confirm mum") {
                    try await world.owner.run("select millrace.check_in_confirm('ada', 'mum')")
                }
                guard let path = line.firstMatch(of: #/https?://[^/ ]+(/v1/[a-z_/]+)/#),
                    let body = line.firstMatch(of: #/ -d '([^']*)'/#)
                else { continue }
                let answer = try await world.ask("POST", String(path.output.1), String(body.output.1))
                #expect(answer.status == 200, "\(line): \(answer.text)")
                calls.add()
            }
        }
        #expect(calls.value >= 5)
    }

    @Test func `the guide says which header tells of a clock, and at which level an answer is logged`() throws {
        let guide = try Self.guide()
        #expect(guide.contains("`Client-Time") && guide.contains("MILLRACE_LOG_LEVEL=debug"))
    }
}
