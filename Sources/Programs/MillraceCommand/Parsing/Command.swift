/// A command as data; a verb is one such value in one file of `Verbs/`.
struct Command: Sendable {
    /// Whether the process's settings are read, and the effect of their errors.
    enum SettingsUse: Sendable {
        case unused
        /// Read, and handed to the verb with their problems.
        case reported
        /// Read, and every problem printed before anything starts.
        case checked
    }

    /// `["jobs", "list"]`, or `["status"]` for the short verbs of every day.
    let path: [String]
    let summary: String
    let discussion: String
    let arguments: [Argument]
    let flags: [CommandFlag]
    let examples: [Example]
    let settings: SettingsUse
    let run: @Sendable (Invocation) async throws -> ExitCode

    init(
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

    var name: String { (["millrace"] + path).joined(separator: " ") }

    var usage: String {
        let flags = flags.contains { !$0.hidden } ? ["[flags]"] : []
        return ([name] + arguments.map(\.usage) + flags).joined(separator: " ")
    }

    func flag(named name: String) -> CommandFlag? {
        flags.first { $0.name == name } ?? CommandFlag.global.first { $0.name == name }
    }

    func flag(short: Character) -> CommandFlag? {
        flags.first { $0.short == short } ?? CommandFlag.global.first { $0.short == short }
    }
}

/// A value that is given by its place on the line and not by a flag.
struct Argument: Sendable {
    enum Count: Sendable {
        case one
        case optional
        case many
        case any
    }

    let name: String
    let count: Count
    let kind: ValueKind
    let help: String

    init(_ name: String, _ count: Count = .one, _ kind: ValueKind = .text, help: String) {
        self.name = name
        self.count = count
        self.kind = kind
        self.help = help
    }

    var usage: String {
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
struct Example: Sendable {
    let line: String
    let meaning: String

    init(_ line: String, _ meaning: String) {
        self.line = line
        self.meaning = meaning
    }
}
