import Faults
import Health
import Listeners
import Postgres
import Supervision
import Telemetry
import TestSupport
import Testing
import Workers

@testable import MillraceCommand

@Suite struct ProvidersTests {
    @Test func `an operator forces a provider open, and everybody sees it with the reason`() async throws {
        try await withDatabase { database in
            let url = database.url
            #expect(
                await millrace("providers", "list", "--database-url", url).output == "no provider has been called yet\n"
            )
            let opened = await millrace(
                "providers", "open", "resend", "--create", "--reason", "their maintenance", "--for", "2h",
                "--database-url", url)
            #expect(opened.code == .done && opened.output == "resend is no longer called for 2h\n", "\(opened)")
            let rows = try JSONValue.read(await millrace("providers", "list", "--json", "--database-url", url).output)
            guard case .array(let providers)? = rows["providers"], let row = providers.first else {
                Issue.record("no providers in \(rows)")
                return
            }
            #expect(rows["version"]?.integer == 1 && providers.count == 1)
            #expect(row["provider"]?.text == "resend" && row["class"]?.text == "*")
            #expect(row["state"]?.text == "forced_open" && row["reason"]?.text == "their maintenance")
            #expect(row["forced_by"]?.text != nil && row["until"]?.text != nil)

            let status = await millrace("status", "--database-url", url)
            #expect(status.code == .degraded, "\(status.output)")
            #expect(status.output.contains("their maintenance"), "\(status.output)")
            #expect(await millrace("doctor", "--database-url", url).output.contains("resend"))

            let history = await millrace("providers", "history", "resend", "--jsonl", "--database-url", url)
            let event = try JSONValue.read(history.output)
            #expect(event["from_state"]?.text == "closed" && event["to_state"]?.text == "forced_open", "\(event)")
            let shown = await millrace("providers", "show", "resend", "--database-url", url)
            #expect(shown.code == .done && shown.output.contains("their maintenance"))

            #expect(
                await millrace("providers", "reset", "resend", "--database-url", url).output
                    == "resend goes by its health again\n")
            #expect(
                await millrace("providers", "reset", "resend", "--database-url", url).output
                    == "resend: nothing to change\n")
            #expect(await millrace("status", "--database-url", url).code == .done)
            let observed = await millrace("providers", "observe", "resend", "--json", "--database-url", url)
            #expect(try JSONValue.read(observed.output)["changed"] == .bool(true))
            let closed = await millrace("providers", "close", "resend", "--class", "send", "--database-url", url)
            #expect(closed.code == .done && closed.output.contains("whatever happens for 1h"), "\(closed)")
        }
    }

    @Test func `what is wrong is said, and changes nothing`() async throws {
        try await withDatabase { database in
            let url = database.url
            let unknown = await millrace("providers", "reset", "resend", "--database-url", url)
            #expect(unknown.code == .notFound && unknown.errors.contains("resend"), "\(unknown)")
            #expect(await millrace("providers", "show", "resend", "--database-url", url).code == .notFound)
            let malformed = await millrace("providers", "open", "Re send", "--database-url", url)
            #expect(malformed.code == .misused && !malformed.errors.isEmpty, "\(malformed)")
            let long = await millrace("providers", "open", "resend", "--for", "2y", "--database-url", url)
            #expect(long.code == .misused && long.errors.contains("--for"), "\(long)")
            #expect(
                await millrace("providers", "list", "--database-url", url).output == "no provider has been called yet\n"
            )
        }
    }

    @Test func `the classes of errors are listed without a database`() async throws {
        let outcome = await millrace("providers", "errors", "--json")
        #expect(outcome.code == .done)
        guard case .array(let errors)? = try JSONValue.read(outcome.output)["errors"] else {
            Issue.record("\(outcome.output)")
            return
        }
        #expect(errors.compactMap { $0["class"]?.text } == ErrorClass.allCases.map(\.rawValue))
        #expect(errors.allSatisfy { $0["sentence"]?.text?.isEmpty == false })
    }

    @Test func `flags are set and listed, and the database agrees about who has them`() async throws {
        try await withDatabase { database in
            let url = database.url
            #expect(await millrace("flags", "list", "--database-url", url).output == "no flags\n")
            let set = await millrace(
                "flags", "set", "new-sender", "10", "--create", "--always", "me@example.com", "--reason", "slowly",
                "--database-url", url)
            #expect(set.code == .done && set.output == "new-sender: on for 10 %\n", "\(set)")
            #expect(
                await millrace(
                    "flags", "set", "new-sender", "10", "--always", "me@example.com", "--reason", "slowly",
                    "--database-url", url
                ).output == "new-sender: on for 10 % already\n")
            let row = try JSONValue.read(await millrace("flags", "list", "--jsonl", "--database-url", url).output)
            #expect(row["percent"]?.integer == 10 && row["always"] == ["me@example.com"])
            #expect(row["reason"]?.text == "slowly")
            let connection = try await database.connect()
            let flag = Flag(name: "new-sender", percent: 10, always: ["me@example.com"])
            for key in ["me@example.com"] + (0..<50).map({ "user-\($0)" }) {
                let isOn = try await connection.query(
                    "select millrace.flag_on('new-sender', $1)", [.text(key)]
                ) { row throws(PostgresError) in try row.bool(0) }
                #expect(isOn == [flag.isOn(key)], "\(key)")
            }
            await connection.close()
            for percent in ["101", "-1", "some"] {
                let refused = await millrace("flags", "set", "new-sender", percent, "--database-url", url)
                #expect(refused.code == .misused, "\(percent): \(refused)")
            }
        }
    }

    @Test func `what a process counted stands in its metrics`() async throws {
        var options = Supervisor.Options()
        options.breaker.failures = 1
        let supervisor = Supervisor(options, log: .silent)
        try await supervisor.call("resend", class: "send") { _ in }
        for _ in 0..<2 {
            await #expect(throws: (any Error).self) {
                try await supervisor.call("odd\"one\\") { _ in throw Fault(.unavailable, "down") }
            }
        }
        let standings = supervisor.standings
        #expect(standings.map(\.provider) == ["odd\"one\\", "resend"])
        let health = JobWorker(
            options: JobWorker.Options(database: ConnectionOptions(location: "postgresql:///x")),
            handlers: Practice.handlers, log: .silent
        ).health
        let page = Metrics.page(health, .init(), standings)
        for line in [
            #"millrace_provider_calls_total{provider="resend",class="send",outcome="ok"} 1"#,
            #"millrace_provider_open{provider="resend",class="send"} 0"#,
            #"millrace_provider_open{provider="odd\"one\\",class="default"} 1"#,
            #"millrace_provider_calls_total{provider="odd\"one\\",class="default",outcome="failed"} 1"#,
            #"millrace_provider_calls_refused_total{provider="odd\"one\\",class="default"} 1"#,
            #"millrace_provider_calls_running{provider="resend"} 0"#,
        ] {
            #expect(page.contains("\n\(line)\n"), "\(line) is not in\n\(page)")
        }
        #expect(!Metrics.page(health, .init()).contains("provider"))
    }
}
