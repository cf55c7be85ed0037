/// One flag of a command, as data: parsing, help and completions all read the same value.
package struct CommandFlag: Sendable {
    package enum Arity: Sendable {
        case toggle
        case single
        case repeated
    }

    package let name: String
    package let short: Character?
    package let arity: Arity
    /// The placeholder of the value in help, as in `--limit N`; unused by a toggle.
    package let valueName: String
    package let kind: ValueKind
    /// Nil only for flags that make no sense in an environment, such as `--help`.
    package let environment: String?
    package let fallback: String?
    package let help: String
    package let hidden: Bool
    package let secret: Bool
    /// True when a setting owns the environment and the default: the parser then reads the command line only.
    package let overridesSetting: Bool

    /// A flag that is on or off; `--no-<name>` turns it off again.
    package static func toggle(
        _ name: String, short: Character? = nil, environment: EnvironmentTwin = .usual, hidden: Bool = false,
        help: String
    ) -> CommandFlag {
        CommandFlag(
            name: name, short: short, arity: .toggle, valueName: "", kind: .boolean,
            environment: environment.name(for: name), fallback: nil, help: help, hidden: hidden, secret: false,
            overridesSetting: false)
    }

    /// A flag with one value; the last one wins when it is given twice.
    package static func single(
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
    package static func repeated(
        _ name: String, short: Character? = nil, _ valueName: String, _ kind: ValueKind = .text,
        environment: EnvironmentTwin = .usual, hidden: Bool = false, help: String
    ) -> CommandFlag {
        CommandFlag(
            name: name, short: short, arity: .repeated, valueName: valueName, kind: kind,
            environment: environment.name(for: name), fallback: nil, help: help, hidden: hidden, secret: false,
            overridesSetting: false)
    }

    /// The flag of a setting: its value is read through `Settings`, whatever its origin.
    /// - Parameter other: what help says of it, where the verb reads another setting without the flag.
    package static func overriding(
        _ setting: Setting, _ name: String, short: Character? = nil, _ valueName: String = "", arity: Arity = .single,
        asIn other: Setting? = nil
    ) -> CommandFlag {
        let shown = other ?? setting
        return CommandFlag(
            name: name, short: short, arity: arity, valueName: valueName, kind: setting.kind,
            environment: shown.environment, fallback: shown.fallback, help: shown.help, hidden: false,
            secret: setting.secrecy != .open, overridesSetting: true)
    }
}
