import Foundation
import TestSupport
import Testing

/// `deploy/check`, which runs the checks with other people's code. None of them is run here.
@Suite struct CheckListTests {
    private static let script = Snippet.root.appending(path: "deploy/check").path

    private struct Listed: Decodable {
        let check, summary: String
        let faults: Bool
    }

    @Test func `each check is listed with what it does, and stands in the guide`() async throws {
        let outcome = try await Program.run("python3", [Self.script, "--list", "--json"], errors: true)
        #expect(outcome.status == 0, "\(outcome.text)")
        let guide = try String(
            contentsOf: Snippet.root.appending(path: "deploy/guides/measuring.md"), encoding: .utf8)
        let listed = try outcome.lines.map { try JSONDecoder().decode(Listed.self, from: Data($0.utf8)) }
        let checks = Snippet.root.appending(path: "deploy/checks")
        let names = try FileManager.default.contentsOfDirectory(atPath: checks.path).filter {
            !$0.contains(".") && $0 != "faults"
        }
        #expect(names.count > 15)
        // `house` has a check that stands elsewhere.
        #expect(Set(listed.filter { !$0.faults }.map(\.check)) == Set(names).union(["house"]))
        let counterparts = try FileManager.default.contentsOfDirectory(atPath: checks.appending(path: "faults").path)
            .filter { $0.hasSuffix(".py") && $0 != "lib.py" }
        #expect(Set(listed.filter(\.faults).map { "\($0.check).py" }) == Set(counterparts))
        for one in listed {
            #expect(one.summary.count > 20, "\(one)")
            #expect(guide.contains("| `\(one.check)` |"), "\(one.check) is not in the guide")
        }
    }

    @Test func `a check that is not there is a misuse`() async throws {
        for arguments in [["absent"], ["--faults", "house"], ["--absent"]] {
            let outcome = try await Program.run("python3", [Self.script] + arguments, errors: true)
            #expect(outcome.status == 2, "\(arguments): \(outcome.text)")
        }
    }
}
