import Foundation
import TestSupport
import Testing

@testable import MillraceCommand

private let completions = Completions(
    tree: CommandTree(
        commands: [
            .idle(
                ["jobs", "list"], summary: "List jobs: the \"newest\" [first], it's $quick",
                flags: [
                    .single("state", short: "s", "STATE", .choice(["ready", "dead"]), help: "In this 'state'."),
                    .single("file", "PATH", .path, help: "From here."), .toggle("exact", help: "Count: for real."),
                ]),
            .idle(["jobs", "show"]), .idle(["status"]), .completions, .help,
        ], nouns: ["jobs": "Look at jobs"]))

/// Runs a shell with a script on its standard input.
private func shell(_ name: String, _ arguments: [String], script: String) async throws -> Program.Outcome {
    try await Program.run(
        name, arguments, input: Data(script.utf8), errors: true,
        environment: ["PATH": "/usr/bin:/bin", "HOME": "/tmp", "TERM": "dumb"])
}

/// bash's completions of a line; the last word is the one at the cursor.
private func bash(_ words: String...) async throws -> [String] {
    let line = words.map(Completions.quoted).joined(separator: " ")
    let script = """
        set -u
        \(completions.bash)
        COMP_WORDS=(\(line)); COMP_CWORD=\(words.count - 1)
        _millrace
        printf '%s\\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"}
        """
    return try await shell("bash", ["--norc"], script: script).lines
}

@Suite struct CompletionsTests {
    @Test func `bash completes commands, verbs, flags and their values`() async throws {
        #expect(try await bash("millrace", "") == ["jobs", "status", "completions", "help"])
        #expect(try await bash("millrace", "help", "") == ["jobs", "status", "completions", "help"])
        #expect(try await bash("millrace", "help", "jobs", "") == ["list", "show"])
        #expect(try await bash("millrace", "help", "jobs", "sh") == ["show"])
        #expect(try await bash("millrace", "st") == ["status"])
        #expect(try await bash("millrace", "jobs", "") == ["list", "show"])
        #expect(try await bash("millrace", "--json", "jobs", "sh") == ["show"])
        #expect(try await bash("millrace", "jobs", "list", "--ex") == ["--exact"])
        #expect(try await bash("millrace", "jobs", "list", "--state", "") == ["ready", "dead"])
        #expect(try await bash("millrace", "jobs", "list", "--state", "=", "d") == ["dead"])
        #expect(try await bash("millrace", "jobs", "list", "--state", "=") == ["ready", "dead"])
        #expect(try await bash("millrace", "jobs", "list", "-s", "dead", "--js") == ["--json", "--jsonl"])
        #expect(try await bash("millrace", "completions", "") == ["bash", "zsh", "fish"])
        #expect(try await bash("millrace", "--database-url", "jobs", "--timeout", "5m", "sta") == ["status"])
        #expect(try await bash("millrace", "jobs", "list", "--file", "/etc/passw").contains("/etc/passwd"))
        #expect(try await bash("millrace", "status", "--sta") == [])
    }

    @Test(.enabled(if: exists("/usr/bin/fish"))) func `fish completes commands, verbs, flags and their values`()
        async throws
    {
        func fish(_ line: String) async throws -> [String] {
            let script = completions.fish + "\ncomplete -C \(Completions.quoted(line))\n"
            return try await shell("fish", ["--no-config"], script: script).lines.map {
                String($0.prefix { $0 != "\t" })
            }
        }
        #expect(try await fish("millrace ") == ["completions", "help", "jobs", "status"])
        #expect(try await fish("millrace help jobs ") == ["list", "show"])
        #expect(try await fish("millrace --json jobs sh") == ["show"])
        #expect(try await fish("millrace jobs list --ex") == ["--exact"])
        #expect(try await fish("millrace jobs list --state ").sorted() == ["dead", "ready"])
        #expect(try await fish("millrace completions z") == ["zsh"])
        #expect(try await fish("millrace status --sta") == [])
    }

    /// zsh completes only in a terminal, so `_arguments` is replaced by one that prints its arguments.
    @Test(.enabled(if: exists("/usr/bin/zsh"))) func `zsh asks for the right place with the right words`() async throws
    {
        func zsh(_ words: String...) async throws -> [String] {
            let script = """
                _arguments() { print -r -- "$CURRENT ${words[*]}"; print -rl -- "$@" }
                compdef() { }
                \(completions.zsh)
                words=(\(words.map(Completions.quoted).joined(separator: " "))); CURRENT=\(words.count)
                _millrace
                """
            return try await shell("zsh", ["-f"], script: script).lines
        }
        let checked = try await shell("zsh", ["-n"], script: completions.zsh)
        #expect(checked.status == 0 && checked.text.isEmpty)
        #expect(try await zsh("millrace", "jo").first == "2 millrace jo")
        let jobs = try await zsh("millrace", "--timeout", "jobs", "jobs", "")
        #expect(jobs.first == "2 millrace ")
        #expect(jobs.contains { $0.hasPrefix("1:command:((list\\:") && $0.hasSuffix("show\\:\"Does nothing\"))") })
        let help = try await zsh("millrace", "help", "jobs", "")
        #expect(help.first == "2 millrace ")
        #expect(help.contains { $0.hasPrefix("1:command:((list\\:") && $0.contains("show\\:") })
        let list = try await zsh("millrace", "jobs", "list", "--exact", "--sta")
        #expect(list.first == "3 millrace --exact --sta")
        #expect(list.contains("--state=[In this 'state'.]:STATE:(ready dead)"))
        #expect(list.contains("--exact[Count\\: for real.]"))
    }
}
