/// A command as data; a verb is one such value in one file of `Verbs/`.
package struct Command: Sendable {
    /// Whether the process's settings are read, and the effect of their errors.
    package enum SettingsUse: Sendable {
        case unused
        /// Read, and handed to the verb with their problems.
        case reported
        /// Read, and every problem printed before anything starts.
        case checked
    }

    /// `["jobs", "list"]`, or `["status"]` for the short verbs of every day.
    package let path: [String]
    package let summary: String
    package let discussion: String
    package let arguments: [Argument]
    package let flags: [CommandFlag]
    package let examples: [Example]
    package let settings: SettingsUse
    package let run: @Sendable (Invocation) async throws -> ExitCode

    package init(
        _ path: [String], summary: String, discussion: String = "", arguments: [Argument] = [],
        flags: [CommandFlag] = [],
        examples: [Example] = [], settings: SettingsUse = .checked,
        run: @escaping @Sendable (Invocation) async throws -> ExitCode
    ) {
        self.path = path
        self.summary = summary
        self.discussion = discussion
        self.arguments = arguments
        self.flags = flags
        self.examples = examples
        self.settings = settings
        self.run = run
    }

    package var name: String { (["millrace"] + path).joined(separator: " ") }

    package var usage: String {
        let flags = flags.contains { !$0.hidden } ? ["[flags]"] : []
        return ([name] + arguments.map(\.usage) + flags).joined(separator: " ")
    }

    package func flag(named name: String) -> CommandFlag? {
        flags.first { $0.name == name } ?? CommandFlag.global.first { $0.name == name }
    }

    package func flag(short: Character) -> CommandFlag? {
        flags.first { $0.short == short } ?? CommandFlag.global.first { $0.short == short }
    }
}

/// A value that is given by its place on the line and not by a flag.
package struct Argument: Sendable {
    package enum Count: Sendable {
        case one
        case optional
        case many
        case any
    }

    package let name: String
    package let count: Count
    package let kind: ValueKind
    package let help: String

    package init(_ name: String, _ count: Count = .one, _ kind: ValueKind = .text, help: String) {
        self.name = name
        self.count = count
        self.kind = kind
        self.help = help
    }

    package var usage: String {
        let name = kind.choices.isEmpty ? name : kind.choices.joined(separator: "|")
        return switch count {
        case .one: "<\(name)>"
        case .optional: "[\(name)]"
        case .many: "<\(name)>..."
        case .any: "[\(name)]..."
        }
    }
}

/// A line to copy, and what it does.
package struct Example: Sendable {
    package let line: String
    package let meaning: String

    package init(_ line: String, _ meaning: String) {
        self.line = line
        self.meaning = meaning
    }
}
