/// Every command of the executable, and the descriptions of the nouns.
package struct CommandTree: Sendable {
    package let commands: [Command]
    /// A line for each noun that has verbs below it.
    package let nouns: [String: String]
    /// What its commands read.
    package let settings: SettingsTable

    package init(commands: [Command], nouns: [String: String] = [:], settings: SettingsTable = .core) {
        self.commands = commands
        self.nouns = nouns
        self.settings = settings
    }

    package func command(at path: [String]) -> Command? {
        commands.first { $0.path == path }
    }

    package func commands(below path: [String]) -> [Command] {
        commands.filter { $0.path.count > path.count && $0.path.starts(with: path) }
    }

    package func leadsSomewhere(_ path: [String]) -> Bool {
        commands.contains { $0.path.starts(with: path) }
    }

    /// The words that may follow a path, in the order of registration.
    package func words(after path: [String]) -> [String] {
        var words: [String] = []
        for command in commands(below: path) where !words.contains(command.path[path.count]) {
            words.append(command.path[path.count])
        }
        return words
    }

    /// One line about a word in a list: a command's summary or its noun's.
    package func summary(of path: [String]) -> String {
        command(at: path)?.summary ?? nouns[path.joined(separator: " ")] ?? ""
    }

    /// A flag of any command: needed for flags that stand before the command they belong to.
    package func anyFlag(named name: String) -> CommandFlag? {
        CommandFlag.global.first { $0.name == name } ?? commands.lazy.flatMap(\.flags).first { $0.name == name }
    }

    package func anyFlag(short: Character) -> CommandFlag? {
        CommandFlag.global.first { $0.short == short } ?? commands.lazy.flatMap(\.flags).first { $0.short == short }
    }

    /// Every variable that a flag listens to; `Settings` must not call them unknown.
    package var environmentNames: [String] {
        (CommandFlag.global + commands.flatMap(\.flags)).compactMap(\.environment)
    }

    /// The commands with this verb, for somebody who left out the noun.
    package func homes(of verb: String) -> [Command] {
        commands.filter { $0.path.count > 1 && $0.path.last == verb }
    }
}
