import Composition

/// One flag of a command, as data: parsing, help and completions all read the same value.
struct CommandFlag: Sendable {
    enum Arity: Sendable {
        case toggle
        case single
        case repeated
    }

    let name: String
    let short: Character?
    let arity: Arity
    /// The placeholder of the value in help, as in `--limit N`; unused by a toggle.
    let valueName: String
    let kind: ValueKind
    /// Nil only for flags that make no sense in an environment, such as `--help`.
    let environment: String?
    let fallback: String?
    let help: String
    let hidden: Bool
    let secret: Bool
    /// True when a setting owns the environment and the default: the parser then reads the command line only.
    let overridesSetting: Bool

    /// A flag that is on or off; `--no-<name>` turns it off again.
    static func toggle(
        _ name: String, short: Character? = nil, environment: EnvironmentTwin = .usual, hidden: Bool = false,
        help: String
    ) -> CommandFlag {
        CommandFlag(
            name: name, short: short, arity: .toggle, valueName: "", kind: .boolean,
            environment: environment.name(for: name), fallback: nil, help: help, hidden: hidden, secret: false,
            overridesSetting: false)
    }

    /// A flag with one value; the last one wins when it is given twice.
    static func single(
        _ name: String, short: Character? = nil, _ valueName: String, _ kind: ValueKind = .text,
        environment: EnvironmentTwin = .usual, fallback: String? = nil, hidden: Bool = false, secret: Bool = false,
        help: String
    ) -> CommandFlag {
        CommandFlag(
            name: name, short: short, arity: .single, valueName: valueName, kind: kind,
            environment: environment.name(for: name), fallback: fallback, help: help, hidden: hidden, secret: secret,
            overridesSetting: false)
    }

    /// A flag that may be given many times; its environment twin is a list with commas.
    static func repeated(
        _ name: String, short: Character? = nil, _ valueName: String, _ kind: ValueKind = .text,
        environment: EnvironmentTwin = .usual, hidden: Bool = false, help: String
    ) -> CommandFlag {
        CommandFlag(
            name: name, short: short, arity: .repeated, valueName: valueName, kind: kind,
            environment: environment.name(for: name), fallback: nil, help: help, hidden: hidden, secret: false,
            overridesSetting: false)
    }

    /// The flag of a setting: its value is read through `Settings`, whatever its origin.
    static func overriding(
        _ setting: Setting, _ name: String, short: Character? = nil, _ valueName: String = "", arity: Arity = .single
    ) -> CommandFlag {
        CommandFlag(
            name: name, short: short, arity: arity, valueName: valueName, kind: setting.kind,
            environment: setting.environment, fallback: setting.fallback, help: setting.help, hidden: false,
            secret: setting.secrecy != .open, overridesSetting: true)
    }
}
