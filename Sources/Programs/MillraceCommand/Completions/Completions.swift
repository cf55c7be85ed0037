/// What the shells complete, taken from the command tree; each script is made from the same places.
struct Completions {
    let tree: CommandTree

    /// A place on the line: after a path of words.
    struct Place {
        /// `["jobs"]`; empty for the beginning.
        let path: [String]
        let words: [(word: String, summary: String)]
        let flags: [CommandFlag]
        /// The arguments that are possible there, for choices.
        let choices: [String]
        let takesFiles: Bool

        var key: String { path.joined(separator: " ") }
    }

    var places: [Place] {
        var paths: [[String]] = [[]]
        for command in tree.commands {
            for length in 1...command.path.count {
                let path = Array(command.path.prefix(length))
                if !paths.contains(path) { paths.append(path) }
            }
        }
        return paths.map(place) + topics
    }

    private func place(at path: [String]) -> Place {
        let command = tree.command(at: path)
        let arguments = command?.arguments ?? []
        let takesFiles = arguments.contains { argument in
            if case .path = argument.kind { return true }
            return false
        }
        // `help` takes the words of every command.
        let from = path == ["help"] ? [] : path
        return Place(
            path: path, words: tree.words(after: from).map { ($0, tree.summary(of: from + [$0])) },
            flags: ((command?.flags ?? []) + CommandFlag.global).filter { !$0.hidden },
            choices: arguments.flatMap(\.kind.choices), takesFiles: takesFiles)
    }

    /// `help jobs`: the noun's verbs follow it.
    private var topics: [Place] {
        guard tree.command(at: ["help"]) != nil else { return [] }
        return tree.words(after: []).filter { !tree.words(after: [$0]).isEmpty }.map { noun in
            Place(
                path: ["help", noun], words: tree.words(after: [noun]).map { ($0, tree.summary(of: [noun, $0])) },
                flags: CommandFlag.global.filter { !$0.hidden }, choices: [], takesFiles: false)
        }
    }

    /// The possible values of a flag, if the shell can complete them.
    enum Values {
        case choices([String])
        case files
        case unknown
    }

    static func values(of flag: CommandFlag) -> Values {
        switch flag.kind {
        case .choice(let names): .choices(names)
        case .path: .files
        case .text, .integer, .duration, .boolean, .presence, .custom: .unknown
        }
    }

    static func spellings(of flag: CommandFlag) -> [String] {
        ["--\(flag.name)"] + (flag.short.map { ["-\($0)"] } ?? [])
    }

    /// In single quotes, as every shell understands them.
    static func quoted(_ text: String) -> String {
        "'" + text.map { $0 == "'" ? "'\\''" : String($0) }.joined() + "'"
    }
}
