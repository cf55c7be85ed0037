/// Parses a command line with the command tree. It does not stop at the first mistake: all are reported together.
package struct Parser {
    package let tree: CommandTree
    package let environment: [String: String]

    package init(tree: CommandTree, environment: [String: String]) {
        self.tree = tree
        self.environment = environment
    }

    /// - Parameter argv: the arguments without the name of the executable.
    package func parse(_ argv: [String]) -> CommandRequest {
        let location = locate(argv)
        let command = tree.command(at: location.path)
        var scan = Scan(parser: self, command: command)
        scan.read(location.rest)
        if scan.isOn("help") {
            if let stray = location.stray { return .misuse(unknownWord(stray, after: location.path, others: [])) }
            return .help(path: location.path)
        }
        if scan.isOn("version"), let version = tree.command(at: ["version"]) {
            return .version(Parsed(command: version, flags: scan.flags))
        }
        guard let command else {
            if let stray = location.stray {
                return .misuse(unknownWord(stray, after: location.path, others: scan.problems))
            }
            return .misuse(missingVerb(after: location.path, others: scan.problems))
        }
        var resolution = Resolution(command: command, environment: environment)
        resolution.resolve(flags: scan.flags, refused: scan.refused, words: scan.words)
        let problems = scan.problems + resolution.problems
        guard problems.isEmpty else {
            return .misuse(Misuse(problems: problems, usage: command.usage, help: command.name))
        }
        return .run(resolution.parsed)
    }

    private func missingVerb(after path: [String], others: [String]) -> Misuse {
        let name = (["millrace"] + path).joined(separator: " ")
        let words = tree.words(after: path)
        let problem = path.isEmpty ? "a command is missing" : "\(name) needs a verb: \(ValueKind.oneOf(words))"
        return Misuse(
            problems: others + [problem], usage: "\(name) <\(path.isEmpty ? "command" : "verb")>", help: name,
            isEmptyLine: path.isEmpty && others.isEmpty)
    }

    private func unknownWord(_ word: String, after path: [String], others: [String]) -> Misuse {
        let name = (["millrace"] + path).joined(separator: " ")
        let words = tree.words(after: path)
        let shown = Secrets.quoted(word)
        let problem: String
        if let near = Suggestions.closest(to: word, among: words) {
            problem = "\(shown) is not a \(path.isEmpty ? "command" : "verb of \(name)"); did you mean \(name) \(near)?"
        } else if path.isEmpty, !tree.homes(of: word).isEmpty {
            let homes = tree.homes(of: word).map(\.name)
            problem = "\(shown) needs its noun; did you mean \(ValueKind.oneOf(homes))?"
        } else if path.isEmpty {
            problem = "\(shown) is not a command; millrace --help lists them"
        } else {
            problem = "\(shown) is not a verb of \(name); it has \(ValueKind.oneOf(words))"
        }
        return Misuse(
            problems: [problem] + others, usage: "\(name) <\(path.isEmpty ? "command" : "verb")>", help: name)
    }
}
