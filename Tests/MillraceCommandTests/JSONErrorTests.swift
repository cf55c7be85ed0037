import TestSupport
import Testing

@testable import MillraceCommand

@Suite struct JSONErrorTests {
    private func error(_ outcome: Outcome) throws -> JSONValue {
        let last = try #require(outcome.errors.split(separator: "\n").last.map(String.init))
        let value = try JSONValue.read(last)
        #expect(value["version"]?.integer == 1)
        return try #require(value["error"])
    }

    @Test func `under --json an error is the last line of standard error, as JSON`() async throws {
        try await withDatabase { database in
            let unknown = await millrace("queues", "pause", "mial", "--json", "--database-url", database.url)
            #expect(unknown.code == .notFound && unknown.output.isEmpty)
            let notFound = try error(unknown)
            #expect(notFound["class"] == "not_found" && notFound["exit_code"]?.integer == 3)
            #expect(notFound["message"] == "there is no queue mial")
            #expect(notFound["hint"]?.text?.contains("queues list") == true)
            let lines = await millrace("jobs", "show", "7", "--jsonl", "--database-url", database.url)
            #expect(try error(lines)["class"] == "not_found")
            let away = await millrace("status", "--json", "--database-url", "postgres://x@127.0.0.1:1/x")
            #expect(try error(away)["class"] == "unreachable" && away.code == .unreachable)
        }
    }

    @Test func `usage errors are JSON too, all of them, for every verb`() async throws {
        for command in Verbs.tree.commands where command.path != ["help"] {
            let capture = Capture()
            let code = await Application.run(
                arguments: command.path + ["--json", "--no-such-flag", "--nor-this"], surroundings: .fake(),
                console: capture.console)
            let outcome = Outcome(code: code, output: capture.output, errors: capture.errors)
            #expect(code == .misused && outcome.output.isEmpty, "\(command.name)")
            #expect(outcome.errors.split(separator: "\n").count == 1, "\(command.name): \(outcome.errors)")
            let error = try error(outcome)
            #expect(error["class"] == "misused" && error["exit_code"]?.integer == 2)
            guard case .array(let problems)? = error["problems"] else {
                Issue.record("no problems in \(error)")
                return
            }
            #expect(problems.count >= 2 && error["hint"]?.text?.contains("--help") == true, "\(command.name)")
        }
    }

    @Test func `without --json errors stay text`() async {
        let outcome = await millrace("jobs", "list", "--no-such-flag")
        #expect(outcome.errors.hasPrefix("millrace: unknown flag") && !outcome.errors.contains("{"))
    }

    @Test func `migrate --dry-run --json prints JSON`() async throws {
        let outcome = await millrace("migrate", "--dry-run", "--json")
        let value = try JSONValue.read(outcome.output)
        guard case .array(let scripts)? = value["scripts"] else {
            Issue.record("no scripts")
            return
        }
        #expect(value["dry_run"] == true && scripts.count > 50)
        #expect(scripts.allSatisfy { $0["name"]?.text?.isEmpty == false && $0["sql"]?.text?.isEmpty == false })
        let roles = await millrace("migrate", "--print-roles", "--json")
        #expect(try JSONValue.read(roles.output)["sql"]?.text?.contains("create role") == true)
    }
}
