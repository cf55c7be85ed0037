import CommandKit
import Testing

extension Command {
    /// A verb that does nothing.
    fileprivate static func idle(
        _ path: [String], arguments: [Argument] = [], flags: [CommandFlag] = []
    ) -> Command {
        Command(path, summary: "Does nothing", arguments: arguments, flags: flags, settings: .unused) { _ in .done }
    }
}

private let tree = CommandTree(
    commands: [
        .idle(
            ["jobs", "list"],
            flags: [
                .single("limit", short: "n", "N", .integer(1...500), fallback: "50", help: "How many."),
                .single("queue", "NAME", help: "Of this queue."),
                .single("since", "DURATION", .duration(.zero ... .seconds(86_400)), help: "Not older than this."),
                .single("state", "STATE", .choice(["ready", "dead"]), help: "In this state."),
                .repeated("tag", "TAG", help: "With this tag."),
                .toggle("exact", short: "x", help: "Count for real."),
            ]),
        .idle(["jobs", "show"], arguments: [Argument("id", .one, .integer(1 ... .max), help: "the job's id")]),
        .idle(
            ["enqueue"],
            arguments: [Argument("kind", help: "what to run"), Argument("args", .optional, help: "its arguments")],
            flags: [
                .single("priority", "N", .integer(0...9), help: "Smaller is earlier."), .toggle("wait", help: "Wait."),
            ]),
        .idle(["version"]),
    ], nouns: ["jobs": "Look at jobs"])

private func parse(_ line: String..., environment: [String: String] = [:]) -> CommandRequest {
    Parser(tree: tree, environment: environment).parse(line)
}

private func parsed(_ request: CommandRequest) throws -> Parsed {
    guard case .run(let parsed) = request else { throw Failure("not understood: \(request)") }
    return parsed
}

private func problems(_ request: CommandRequest) -> [String] {
    guard case .misuse(let misuse) = request else { return [] }
    return misuse.problems
}

@Suite struct ParserTests {
    @Test func `values are read in every spelling`() throws {
        for line in [["--limit", "7"], ["--limit=7"], ["-n", "7"], ["-n7"], ["-n=7"]] {
            let request = Parser(tree: tree, environment: [:]).parse(["jobs", "list"] + line)
            #expect(try parsed(request).integer("limit") == 7)
        }
    }

    @Test func `flags may stand anywhere, before the command too`() throws {
        let line = try parsed(parse("--json", "--queue", "mail", "jobs", "-q", "list", "--exact"))
        #expect(line.command.path == ["jobs", "list"])
        #expect(line.string("queue") == "mail")
        #expect(line.isOn("json") && line.isOn("quiet") && line.isOn("exact") && !line.isOn("verbose"))
    }

    @Test func `short toggles may be bundled`() throws {
        let line = try parsed(parse("jobs", "list", "-qxn3"))
        #expect(line.isOn("quiet") && line.isOn("exact"))
        #expect(line.integer("limit") == 3)
    }

    @Test func `a repeated flag keeps every value and a single one the last`() throws {
        let line = try parsed(parse("jobs", "list", "--tag", "a", "--tag=b,c", "--queue", "x", "--queue", "y"))
        #expect(line.list("tag") == ["a", "b,c"])
        #expect(line.string("queue") == "y")
    }

    @Test func `a toggle can be turned off again`() throws {
        #expect(try !parsed(parse("jobs", "list", "--no-exact", environment: ["MILLRACE_EXACT": "1"])).isOn("exact"))
        #expect(try !parsed(parse("jobs", "list", "--exact=off")).isOn("exact"))
    }

    @Test func `after two dashes nothing is a flag`() throws {
        let line = try parsed(parse("enqueue", "--wait", "--", "--kind", "-h"))
        #expect(line.string("kind") == "--kind")
        #expect(line.string("args") == "-h")
    }

    @Test func `a lone dash and a negative number are words`() throws {
        #expect(try parsed(parse("enqueue", "k", "-")).string("args") == "-")
        #expect(try parsed(parse("enqueue", "k", "-5")).string("args") == "-5")
    }

    @Test func `a flag wins over the environment and that over the default`() throws {
        let environment = ["MILLRACE_LIMIT": "9", "MILLRACE_TAG": "a, b"]
        let byFlag = try parsed(parse("jobs", "list", "--limit", "3", environment: environment))
        #expect(byFlag.integer("limit") == 3)
        #expect(byFlag.origin("limit") == .flag("limit"))
        let byEnvironment = try parsed(parse("jobs", "list", environment: environment))
        #expect(byEnvironment.integer("limit") == 9)
        #expect(byEnvironment.origin("limit") == .environment("MILLRACE_LIMIT"))
        #expect(byEnvironment.list("tag") == ["a", "b"])
        let byDefault = try parsed(parse("jobs", "list", environment: ["MILLRACE_LIMIT": ""]))
        #expect(byDefault.integer("limit") == 50)
        #expect(byDefault.origin("limit") == .fallback)
        #expect(byDefault.origin("queue") == nil)
    }

    @Test func `all mistakes of a line are told at once`() {
        let found = problems(
            parse("jobs", "list", "--limit", "0", "--since=5", "--state", "raedy", "--colour", "more"))
        #expect(found.count == 5)
        #expect(found.contains("--limit takes a whole number from 1 to 500, not '0'"))
        #expect(
            found.contains {
                $0.hasPrefix("--since takes a duration such as") && $0.hasSuffix("from 0s to 1d, not '5'")
            })
        #expect(found.contains("--state takes ready or dead, not 'raedy'; did you mean ready?"))
        #expect(found.contains("unknown flag --colour"))
        #expect(found.contains("unexpected argument 'more'"))
    }

    @Test func `mistyped words and flags get a suggestion`() {
        #expect(problems(parse("jbos")) == ["'jbos' is not a command; did you mean millrace jobs?"])
        #expect(
            problems(parse("jobs", "lsit")) == [
                "'lsit' is not a verb of millrace jobs; did you mean millrace jobs list?"
            ])
        #expect(problems(parse("show", "4")) == ["'show' needs its noun; did you mean millrace jobs show?"])
        #expect(problems(parse("jobs")) == ["millrace jobs needs a verb: list or show"])
        #expect(
            problems(parse("jobs", "frobnicate")) == [
                "'frobnicate' is not a verb of millrace jobs; it has list or show"
            ])
        #expect(problems(parse("jobs", "list", "--limti", "5")) == ["unknown flag --limti; did you mean --limit?"])
        #expect(problems(parse("--limti=5", "jobs", "list")) == ["unknown flag --limti; did you mean --limit?"])
        #expect(problems(parse("jobs", "list", "--no-exat")) == ["unknown flag --no-exat; did you mean --no-exact?"])
        #expect(
            problems(parse("jobs", "list", "--priority", "5"))
                == ["millrace jobs list has no flag --priority; it belongs to millrace enqueue"])
    }

    @Test func `a misuse names the usage and where to read on`() throws {
        guard case .misuse(let misuse) = parse("jobs", "show") else { throw Failure("understood") }
        #expect(
            misuse.lines == [
                "millrace: <id> is missing: the job's id", "usage: millrace jobs show <id>",
                "see millrace jobs show --help",
            ])
    }

    @Test func `a flag without its value does not eat the next flag`() {
        #expect(problems(parse("jobs", "list", "--queue", "--exact")) == ["--queue needs a value: a text"])
        #expect(problems(parse("jobs", "list", "--queue")) == ["--queue needs a value: a text"])
    }

    @Test func `a negative number is a value, and its range is told`() {
        #expect(
            problems(parse("enqueue", "k", "--priority", "-1")) == [
                "--priority takes a whole number from 0 to 9, not '-1'"
            ])
        #expect(problems(parse("enqueue", "k", "--priority", "99999999999999999999")).count == 1)
    }

    @Test func `a bad variable is told by its own name`() {
        let found = problems(parse("jobs", "list", environment: ["MILLRACE_LIMIT": "many", "MILLRACE_JSON": "maybe"]))
        #expect(found.count == 2)
        #expect(found[0] == "MILLRACE_LIMIT, the environment's --limit, takes a whole number from 1 to 500, not 'many'")
    }

    @Test func `one format at a time, and the line wins over the environment`() throws {
        #expect(
            problems(parse("jobs", "list", "--json", "--jsonl")) == [
                "--json and --jsonl exclude each other: choose one"
            ])
        let line = try parsed(parse("jobs", "list", "--jsonl", environment: ["MILLRACE_JSON": "1"]))
        #expect(line.isOn("jsonl") && !line.isOn("json"))
    }

    @Test func `NUL is refused everywhere`() {
        #expect(problems(parse("enqueue", "a\0b")) == ["<kind> must not contain a NUL character"])
    }

    @Test func `help and version win over the mistakes beside them`() {
        guard case .help(let path) = parse("jobs", "list", "--limit", "x", "-h") else {
            Issue.record("no help")
            return
        }
        #expect(path == ["jobs", "list"])
        guard case .version = parse("--version") else {
            Issue.record("no version")
            return
        }
    }
}

@Suite struct DurationTextTests {
    @Test(arguments: [
        ("500ms", 500), ("90s", 90_000), ("5m", 300_000), ("2h", 7_200_000), ("1d", 86_400_000), ("1h30m", 5_400_000),
        ("0s", 0),
    ])
    func `what people type is read`(text: String, milliseconds: Int) {
        #expect(DurationText.read(text) == .milliseconds(milliseconds))
    }

    @Test(arguments: [
        "", "5", "s", "-5s", "5 s", "1.5s", "30m1h", "5m5m", "5x", "99999999999999d", "9223372036854775807s", "٥s",
    ])
    func `what could be misread is refused`(text: String) {
        #expect(DurationText.read(text) == nil)
    }

    @Test func `spelling reads back as the same`() {
        for milliseconds in [0, 1, 999, 1000, 61_001, 3_600_000, 90_061_001] {
            let text = DurationText.spell(.milliseconds(milliseconds))
            #expect(DurationText.read(text) == .milliseconds(milliseconds))
        }
    }
}

@Suite struct SuggestionTests {
    @Test func `near names are found and far ones are not`() {
        let names = ["enqueue", "status", "worker", "workers", "jobs"]
        #expect(Suggestions.closest(to: "enqeue", among: names) == "enqueue")
        #expect(Suggestions.closest(to: "sttaus", among: names) == "status")
        #expect(Suggestions.closest(to: "enq", among: names) == "enqueue")
        #expect(Suggestions.closest(to: "JOBS", among: names) == "jobs")
        #expect(Suggestions.closest(to: "x", among: names) == nil)
        #expect(Suggestions.closest(to: "deploy", among: names) == nil)
    }
}
