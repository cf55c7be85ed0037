import CommandKit
import FoundationEssentials
import LoadKit

/// Asks `status` and `doctor`, as an operator does, until one of them names the culprit.
struct DisasterWatch: Sendable {
    let directory: String
    let location: String
    let environment: [String: String]

    struct Answer: Sendable {
        var by: String
        var seconds: Double
        var sentence: String
        var command: String?
    }

    func ask(_ made: MadeDisaster, within limit: Duration) async throws -> Answer? {
        let began = ContinuousClock.now
        var turn = 0
        while began.duration(to: .now) < limit {
            for verb in ["status", "doctor"] {
                turn += 1
                let said = try await run(verb, turn)
                for one in Self.sentences(said, isWell: made.isWell)
                where made.culprits.allSatisfy({ one.sentence.contains($0) || one.command?.contains($0) == true }) {
                    return Answer(
                        by: verb, seconds: began.duration(to: .now) / .seconds(1), sentence: one.sentence,
                        command: one.command)
                }
            }
            try await Task.sleep(for: .milliseconds(200))
        }
        return nil
    }

    private func run(_ verb: String, _ turn: Int) async throws -> String {
        let file = "\(directory)/said-\(verb)-\(turn)"
        var variables = environment
        variables["DATABASE_URL"] = location
        let process = try StartedProcess(
            verb, [verb, "--json", "--quiet"], environment: variables, log: file)
        _ = await process.end(nil)
        let said = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
        try? FileManager.default.removeItem(atPath: file)
        return said
    }

    /// What is wrong, by its JSON; or all that it said, where it could not even ask.
    static func sentences(_ said: String, isWell: Bool = false) -> [(sentence: String, command: String?)] {
        guard let brace = said.firstIndex(of: "{"), let json = try? JSONValue.read(Array(said[brace...].utf8)) else {
            return [(said, nil)]
        }
        let checks = (json["checks"]?.items ?? []).filter { isWell || $0["result"]?.text != "ok" }.map { check in
            ("\(check["check"]?.text ?? ""): \(check["sentence"]?.text ?? "")", check["advice"]?.text)
        }
        let findings = (json["findings"]?.items ?? []).map { finding in
            (finding["sentence"]?.text ?? "", finding["command"]?.text)
        }
        let error = json["error"].map { [("\($0["message"]?.text ?? "") \($0["hint"]?.text ?? "")", nil as String?)] }
        return checks + findings + (error ?? [])
    }
}
