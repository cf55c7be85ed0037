/// The effective settings of the process, each with its origin, and everything that is wrong with them.
package struct Settings: Sendable {
    package struct Entry: Sendable {
        package let setting: Setting
        /// Nil when nobody set it and there is no default.
        package var value: Value?
        /// As it was written: secret until `setting.shown` has masked it.
        package var text: String?
        package var origin: Origin
        /// Why it is so, where that is not plain.
        package var note: String?

        package var shown: String? { text.map(setting.shown) }

        /// A secret that was given on the command line, which everybody on the machine sees.
        package var isSecretFlag: Bool {
            guard setting.secrecy != .open, case .flag = origin else { return false }
            return true
        }
    }

    package var entries: [Entry] = []
    package var problems: [String] = []
    package var warnings: [String] = []

    package init() {}

    package func entry(_ setting: Setting) -> Entry? { entries.first { $0.setting.name == setting.name } }
    package func text(_ setting: Setting) -> String? { entry(setting)?.text }

    package func string(_ setting: Setting) -> String {
        guard case .text(let text)? = value(setting) else { preconditionFailure("\(setting.name) is not text") }
        return text
    }

    package func integer(_ setting: Setting) -> Int {
        guard case .integer(let number)? = value(setting) else {
            preconditionFailure("\(setting.name) is not a number")
        }
        return number
    }

    package func duration(_ setting: Setting) -> Duration {
        guard case .duration(let duration)? = value(setting) else {
            preconditionFailure("\(setting.name) is not a duration")
        }
        return duration
    }

    package func isOn(_ setting: Setting) -> Bool { value(setting) == .boolean(true) }

    private func value(_ setting: Setting) -> Value? { entry(setting)?.value }
}

/// How to reach Postgres.
package enum DatabaseAddress: Sendable, Equatable {
    /// A URL or key=value pairs, for libpq; secret.
    case text(String)
    /// libpq finds it in the PG* variables.
    case libpqVariables
    /// Nothing is set: `dev` runs an embedded Postgres, all others refuse.
    case none
}

extension Settings {
    package var database: DatabaseAddress {
        guard let entry = entry(.databaseURL) else { return .none }
        if case .text(let text)? = entry.value { return .text(text) }
        return entry.text == nil ? .none : .libpqVariables
    }

    package var directURL: String? { text(.directURL) }
    /// Nil when no directory can be written to.
    package var directory: String? { text(.directory) }
    package var queues: [QueueSlots] { QueueSlots.read(string(.queues)) ?? [] }
    package var slots: Int { integer(.slots) }
    package var pool: Int { integer(.pool) }
    package var statementTimeout: Duration { duration(.statementTimeout) }
    package var drainTimeout: Duration { duration(.drainTimeout) }
    package var poll: Duration { duration(.poll) }
    /// `auto`, `on` or `off`
    package var prepare: String { string(.prepare) }
    /// nil: each part of a worker opens its own.
    package var connections: Int? {
        if case .integer(let number)? = value(.connections) { number } else { nil }
    }
    package var practice: Bool { isOn(.practice) }
    package var onlyBuild: Bool { isOn(.onlyBuild) }
    package var logLevel: String { string(.logLevel) }
    package var logFormat: String { string(.logFormat) }
    package var clientRole: String { string(.clientRole) }
    package var workerRole: String { string(.workerRole) }
    package var adminRole: String { string(.adminRole) }
    package var viewerRole: String { string(.viewerRole) }
    package var operatorRole: String { string(.operatorRole) }
    package var gatewayRole: String { string(.gatewayRole) }
}

extension Settings {
    /// Replaces the value of a setting.
    package mutating func point(_ setting: Setting, at text: String) {
        entries.removeAll { $0.setting.name == setting.name }
        entries.append(Entry(setting: setting, value: .text(text), text: text, origin: .fallback))
    }
}
