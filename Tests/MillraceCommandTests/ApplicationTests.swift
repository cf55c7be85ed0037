import Glibc
import Testing

@testable import MillraceCommand

private struct Silent: Error {
    let secret = "hunter2"
}

private func tree(_ run: @escaping @Sendable (Invocation) async throws -> ExitCode) -> CommandTree {
    CommandTree(commands: [Command(["go"], summary: "Go", run: run), .version])
}

@Suite struct ApplicationTests {
    @Test func `the numbers of the exit codes are the contract's`() {
        #expect(ExitCode.allCases.map(\.rawValue) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11])
    }

    @Test func `version is text for people and an object for machines`() async throws {
        let text = await millrace("version")
        #expect(text.code == .done && text.output.hasPrefix("millrace 0.2.0\nSwift ") && text.errors.isEmpty)
        let json = try JSONValue.read(await millrace("--version", "--json").output)
        #expect(json["version"]?.integer == 1)
        #expect(json["millrace"]?.text == "0.2.0")
    }

    @Test func `an empty line shows the help as an error`() async {
        let outcome = await millrace()
        #expect(outcome.code == .misused && outcome.output.isEmpty && outcome.errors.contains("commands:"))
    }

    @Test func `a misuse ends with 2 and leaves the results empty`() async {
        let outcome = await millrace("vresion")
        #expect(outcome.code == .misused && outcome.output.isEmpty)
        #expect(
            outcome.errors == """
                millrace: 'vresion' is not a command; did you mean millrace version?
                usage: millrace <command>
                see millrace --help

                """)
        let json = await millrace("vresion", "--json")
        #expect(json.code == .misused && json.output.isEmpty)
        #expect(json.errors.contains(#""class":"misused""#) && json.errors.contains("did you mean millrace version?"))
    }

    @Test func `broken settings stop a verb before it starts, and all are told`() async {
        let environment = ["MILLRACE_SLOTS": "x", "MILLRACE_POLL": "0s"]
        let outcome = await millrace("go", environment: environment, tree: tree { _ in throw Failure("started") })
        #expect(outcome.code == .misused)
        #expect(outcome.errors.contains("MILLRACE_SLOTS") && outcome.errors.contains("MILLRACE_POLL"))
        #expect(!outcome.errors.contains("started"))
        #expect(await millrace("version", environment: environment).code == .done)
    }

    @Test func `a failure brings its exit code, its sentence and its hint`() async {
        let outcome = await millrace(
            "go", tree: tree { _ in throw Failure(.notFound, "there is no job 7", hint: "try 8") })
        #expect(outcome.code == .notFound)
        #expect(outcome.errors == "millrace: there is no job 7\ntry 8\n")
    }

    @Test func `an error without a description tells its name and nothing it carries`() async {
        let outcome = await millrace("go", tree: tree { _ in throw Silent() })
        #expect(outcome.code == .failed && outcome.errors == "millrace: Silent\n")
    }

    @Test func `lost results are a failure`() async {
        let capture = Capture()
        let full = Console(output: Sink(isTerminal: false) { _ in "no space left" }, errors: capture.console.errors)
        let code = await Application.run(arguments: ["version"], surroundings: .fake(), console: full)
        #expect(code == .failed)
        #expect(capture.errors == "millrace: the results could not be written: no space left\n")
    }

    @Test func `a reader that closed its pipe gets no further output`() async {
        let capture = Capture()
        let left = Console(
            output: Sink(isTerminal: false) { _ in Descriptor.sentence(EPIPE) }, errors: capture.console.errors)
        let code = await Application.run(arguments: ["version"], surroundings: .fake(), console: left)
        #expect(code == .failed && capture.errors.isEmpty)
    }

    @Test func `colours obey NO_COLOR, the flag and a dumb terminal`() async {
        let paint = tree { invocation in
            invocation.console.print("x", .red)
            return .done
        }
        #expect(await millrace("go", columns: 80, tree: paint).output == "\u{1b}[31mx\u{1b}[0m\n")
        #expect(await millrace("go", environment: ["NO_COLOR": "1"], columns: 80, tree: paint).output == "x\n")
        #expect(await millrace("go", environment: ["TERM": "dumb"], columns: 80, tree: paint).output == "x\n")
        #expect(await millrace("go", "--no-color", columns: 80, tree: paint).output == "x\n")
        #expect(await millrace("go", tree: paint).output == "x\n")
    }

    @Test func `a destructive verb needs a yes`() async {
        let careful = tree { invocation in
            try invocation.confirm("deleting 12 jobs")
            return .done
        }
        let alone = await millrace("go", tree: careful)
        #expect(alone.code == .misused && alone.errors.contains("deleting 12 jobs needs --yes"))
        #expect(await millrace("go", "--yes", tree: careful).code == .done)
        for (answer, code) in [("y", ExitCode.done), ("YES", .done), ("", .failed), ("n", .failed)] {
            var surroundings = Surroundings.fake()
            surroundings.ask = { _ in answer }
            let console = Capture().console
            #expect(
                await Application.run(arguments: ["go"], surroundings: surroundings, console: console, tree: careful)
                    == code)
        }
    }

    @Test func `config shows every setting, warns, and ends with 2 when something is wrong`() async throws {
        let good = await millrace("config", "--json", "--slots=7", environment: ["MILLRACE_SLOT": "1"])
        #expect(good.code == .done && good.errors.contains("did you mean MILLRACE_SLOTS?"))
        let json = try JSONValue.read(good.output)
        guard case .array(let settings)? = json["settings"] else { throw Failure("no settings") }
        #expect(settings.count == Setting.all.count)
        let slots = settings.first { $0["name"]?.text == "slots" }
        #expect(slots?["value"]?.text == "7" && slots?["origin"]?.text == "flag" && slots?["source"]?.text == "--slots")
        let bad = await millrace("config", environment: ["MILLRACE_SLOTS": "x"])
        #expect(
            bad.code == .misused && bad.output.contains("MILLRACE_POOL") && bad.errors.contains("MILLRACE_SLOTS takes"))
    }
}

@Suite struct HelpTests {
    @Test(arguments: [nil, 20, 60, 80, 200])
    func `every page fits its terminal`(columns: Int?) {
        let page = HelpPage(tree: Verbs.tree, columns: columns)
        for path in [[]] + Verbs.tree.commands.map(\.path) {
            for line in page.text(for: path).split(separator: "\n") where !line.hasPrefix("  ") || line.contains(".  ")
            {
                #expect(DisplayWidth.of(String(line)) <= page.columns, "\(line)")
            }
        }
    }

    @Test func `a page tells flags with their twin and default, arguments and examples`() async {
        let page = await millrace("config", "--help")
        #expect(page.code == .done && page.errors.isEmpty)
        for text in [
            "usage: millrace config [flags]", "[default: 100,", "MILLRACE_SLOTS]", "examples:", "DATABASE_URL_FILE",
        ] {
            #expect(page.output.contains(text))
        }
        #expect(await millrace("help", "config").output == page.output)
        #expect(await millrace("completions", "-h").output.contains("<bash|zsh|fish>"))
    }

    @Test func `the first page has every command and every exit code`() async {
        let page = await millrace("--help").output
        for word in Verbs.tree.words(after: []) { #expect(page.contains(Verbs.tree.summary(of: [word]))) }
        for code in ExitCode.allCases { #expect(page.contains(code.meaning)) }
    }

    @Test func `help for a mistyped command suggests the right one`() async {
        let outcome = await millrace("help", "cofnig")
        #expect(outcome.code == .misused && outcome.errors.contains("did you mean millrace config?"))
    }

    @Test func `every verb has a summary without a full stop and examples that begin with us`() {
        for command in Verbs.tree.commands {
            #expect(!command.summary.isEmpty && !command.summary.hasSuffix("."))
            for example in command.examples { #expect(example.line.contains("millrace")) }
        }
    }

    @Test func `every group of verbs has a summary, also below another`() {
        for command in Verbs.tree.commands {
            for length in 1..<max(2, command.path.count) {
                let group = Array(command.path.prefix(length))
                #expect(!Verbs.tree.summary(of: group).isEmpty, "\(group)")
            }
        }
    }
}
