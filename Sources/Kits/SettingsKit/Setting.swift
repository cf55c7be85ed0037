/// One setting of the process, as data: reading, checking, `millrace config` and the documentation share it.
package struct Setting: Sendable {
    package enum Secrecy: Sendable {
        /// May be shown; for every address in it, without the user info and the values of its query.
        case open
        /// A connection string: everything but its secrets may be shown.
        case connection
        /// Names with connection strings.
        case connections
        case hidden
    }

    /// The name in `--json`, such as `drain-timeout`.
    package let name: String
    /// Usually the same; the flag that is given once for each queue is `--queue`.
    package let flagName: String
    package let environment: String
    package let kind: ValueKind
    package let fallback: String?
    package let secrecy: Secrecy
    package let help: String
    package let valueName: String
    package let isRepeated: Bool
    /// A file with the value may have several lines.
    package let hasLines: Bool

    package init(
        _ name: String, flag: String? = nil, environment: String? = nil, _ kind: ValueKind, fallback: String? = nil,
        secrecy: Secrecy = .open, valueName: String = "", isRepeated: Bool = false,
        hasLines: Bool = false, help: String
    ) {
        self.name = name
        self.flagName = flag ?? name
        self.environment = environment ?? EnvironmentTwin.usual.name(for: name) ?? ""
        self.kind = kind
        self.fallback = fallback
        self.secrecy = secrecy
        self.valueName = valueName
        self.isRepeated = isRepeated
        self.hasLines = hasLines
        self.help = help
    }

    /// The variable that names a file with the secret, so that the secret need not be in the environment.
    package var fileTwin: String? { secrecy == .open ? nil : environment + "_FILE" }

    /// A value for people and for `--json`.
    package func shown(_ text: String) -> String {
        switch secrecy {
        case .open: Secrets.masked(addressesIn: text)
        case .connection: Secrets.masked(connection: text)
        case .connections: DatabaseList.masked(text)
        case .hidden: Secrets.mask
        }
    }
}
