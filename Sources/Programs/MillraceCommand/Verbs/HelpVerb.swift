extension Command {
    static let help = Command(
        ["help"],
        summary: "Show the help of a command",
        arguments: [Argument("command", .any, help: "the command's words; none for the list of all")],
        examples: [
            Example("millrace help", "every command there is"),
            Example("millrace help config", "one of them"),
        ],
        settings: .unused
    ) { invocation in
        // Through the parser, so that a mistyped word gets the same suggestion as everywhere.
        let words = invocation.parsed.list("command")
        switch Parser(tree: invocation.tree, environment: [:]).parse(words + ["--help"]) {
        case .help(let path):
            let page = HelpPage(tree: invocation.tree, columns: invocation.console.output.columns)
            invocation.console.output.write(page.text(for: path))
            return .done
        case .misuse(let misuse):
            if invocation.console.format == .human {
                for line in misuse.lines { invocation.console.plainError(line) }
            } else {
                for problem in misuse.problems { invocation.console.failure(problem) }
            }
            return .misused
        case .run, .version: preconditionFailure("a line with --help asks for help")
        }
    }
}
