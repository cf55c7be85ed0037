/// The help of everything in the command tree, for a reader who sees it for the first time.
package struct HelpPage {
    package let tree: CommandTree
    package let columns: Int

    /// - Parameter columns: the terminal's; nil for a pipe. Lines longer than 100 columns are hard to read.
    package init(tree: CommandTree, columns: Int?) {
        self.tree = tree
        self.columns = min(100, max(60, columns ?? 100))
    }

    package func text(for path: [String]) -> String {
        let lines: [String]
        if path.isEmpty {
            lines = top
        } else if let command = tree.command(at: path) {
            lines = page(of: command)
        } else {
            lines = noun(path)
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private var top: [String] {
        var lines = wrapped("millrace runs background jobs from a queue in Postgres.")
        lines += ["", "usage: millrace <command> [flags]", "", "commands:"]
        lines += words(after: [])
        lines += ["", "flags of every command:"] + flags(CommandFlag.global)
        lines += ["", "exit codes:"]
        lines += definitions(ExitCode.allCases.map { ("\($0.rawValue)", $0.meaning) })
        lines += [""]
        lines += wrapped(
            "Flags win over environment variables, and those over defaults: millrace config shows what applies. "
                + "Results go to standard output, all else to standard error.")
        lines += ["", "see millrace help <command>"]
        return lines
    }

    private func noun(_ path: [String]) -> [String] {
        let name = path.joined(separator: " ")
        var lines: [String] = []
        let summary = tree.summary(of: path)
        if !summary.isEmpty { lines += wrapped(Self.sentence(summary)) + [""] }
        lines += ["usage: millrace \(name) <verb> [flags]", "", "verbs:"]
        lines += words(after: path)
        return lines + ["", "see millrace help \(name) <verb>"]
    }

    private func page(of command: Command) -> [String] {
        var lines = wrapped(Self.sentence(command.summary))
        lines += [""] + wrapped("usage: \(command.usage)")
        if !command.discussion.isEmpty { lines += [""] + wrapped(command.discussion) }
        if !command.arguments.isEmpty {
            lines += ["", "arguments:"] + definitions(command.arguments.map { ($0.usage, $0.help) })
        }
        let own = command.flags.filter { !$0.hidden }
        if !own.isEmpty { lines += ["", "flags:"] + flags(own) }
        lines += ["", "flags of every command:"] + flags(CommandFlag.global)
        if !command.examples.isEmpty {
            lines += ["", "examples:"]
            for example in command.examples {
                lines += ["  \(example.line)"]
                lines += Wrapping.lines(example.meaning, columns: columns - 6).map { "      \($0)" }
            }
        }
        let below = tree.words(after: command.path)
        if !below.isEmpty { lines += ["", "verbs:"] + words(after: command.path) }
        return lines
    }

    private func words(after path: [String]) -> [String] {
        definitions(tree.words(after: path).map { ($0, tree.summary(of: path + [$0])) })
    }

    private func flags(_ flags: [CommandFlag]) -> [String] {
        definitions(flags.filter { !$0.hidden }.map { (Self.spelling(of: $0), Self.meaning(of: $0)) })
    }

    private static func spelling(of flag: CommandFlag) -> String {
        let short = flag.short.map { "-\($0), " } ?? "    "
        return short + "--\(flag.name)" + (flag.arity == .toggle ? "" : " \(flag.valueName)")
    }

    private static func meaning(of flag: CommandFlag) -> String {
        var notes: [String] = []
        if !flag.kind.choices.isEmpty { notes.append(flag.kind.choices.joined(separator: "|")) }
        if flag.arity == .repeated { notes.append("may be repeated") }
        if let fallback = flag.fallback { notes.append("default: \(fallback)") }
        if let environment = flag.environment { notes.append(environment) }
        return notes.isEmpty ? flag.help : "\(flag.help) [\(notes.joined(separator: ", "))]"
    }

    private func definitions(_ items: [(name: String, text: String)]) -> [String] {
        Wrapping.definitions(items, columns: columns)
    }

    private func wrapped(_ text: String) -> [String] { Wrapping.lines(text, columns: columns) }

    private static func sentence(_ summary: String) -> String { summary.hasSuffix(".") ? summary : summary + "." }
}
