/// A command line that was understood: its command, and every value with its origin.
package struct Parsed: Sendable {
    package typealias Entry = Given

    package let command: Command
    package var flags: [String: Entry] = [:]
    package var arguments: [String: [Value]] = [:]

    package init(command: Command, flags: [String: Entry] = [:]) {
        self.command = command
        self.flags = flags
    }

    package func isOn(_ name: String) -> Bool { value(name) == .boolean(true) }
    /// Turned off, with `--no-<name>`; not merely left out.
    package func isOff(_ name: String) -> Bool { value(name) == .boolean(false) }

    package func string(_ name: String) -> String? {
        guard case .text(let text) = value(name) else { return nil }
        return text
    }

    package func integer(_ name: String) -> Int? {
        guard case .integer(let number) = value(name) else { return nil }
        return number
    }

    package func duration(_ name: String) -> Duration? {
        guard case .duration(let duration) = value(name) else { return nil }
        return duration
    }

    /// Every value of a repeated flag or of an argument that takes many.
    package func list(_ name: String) -> [String] {
        values(name).compactMap { value in
            guard case .text(let text) = value else { return nil }
            return text
        }
    }

    /// nil when the flag was not given and has no default.
    package func origin(_ name: String) -> Origin? { flags[name]?.origin }

    private func value(_ name: String) -> Value? { values(name).last }

    private func values(_ name: String) -> [Value] {
        if let entry = flags[name] { return entry.values }
        if let values = arguments[name] { return values }
        // Only a verb that asks for a name it never declared comes here: our own mistake.
        precondition(
            command.flag(named: name) != nil || command.arguments.contains { $0.name == name },
            "\(command.name) declares no \(name)")
        return []
    }
}

/// Everything that is wrong with one command line, told at once.
package struct Misuse: Error, Equatable {
    package var problems: [String]
    package let usage: String
    /// The command whose help to read.
    package let help: String
    /// True for an empty line: the whole help is more useful than an error.
    package var isEmptyLine = false

    package var lines: [String] {
        problems.map { "millrace: \($0)" } + ["usage: \(usage)", "see \(help) --help"]
    }
}

/// The request of a command line.
package enum CommandRequest: Sendable {
    case run(Parsed)
    case help(path: [String])
    case version(Parsed)
    case misuse(Misuse)
}

extension Settings {
    /// The settings of a command line, or of none.
    package static func load(
        parsed: Parsed?, surroundings: Surroundings, known: [String] = [], table: SettingsTable
    ) -> Settings {
        load(given: parsed?.flags ?? [:], surroundings: surroundings, known: known, table: table)
    }
}
