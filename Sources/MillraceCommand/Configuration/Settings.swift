/// The effective settings of the process, each with its origin, and everything that is wrong with them.
struct Settings: Sendable {
    struct Entry: Sendable {
        let setting: Setting
        /// Nil when nobody set it and there is no default.
        var value: Value?
        /// As written: secret until it went through `setting.shown`.
        var text: String?
        var origin: Origin
        /// Why it is so, where that is not plain.
        var note: String?

        var shown: String? { text.map(setting.shown) }

        /// A secret that was given on the command line, which everybody on the machine sees.
        var isSecretFlag: Bool {
            guard setting.secrecy != .open, case .flag = origin else { return false }
            return true
        }
    }

    var entries: [Entry] = []
    var problems: [String] = []
    var warnings: [String] = []

    func entry(_ setting: Setting) -> Entry? { entries.first { $0.setting.name == setting.name } }
    func text(_ setting: Setting) -> String? { entry(setting)?.text }

    func string(_ setting: Setting) -> String {
        guard case .text(let text)? = value(setting) else { preconditionFailure("\(setting.name) is no text") }
        return text
    }

    func integer(_ setting: Setting) -> Int {
        guard case .integer(let number)? = value(setting) else { preconditionFailure("\(setting.name) is no number") }
        return number
    }

    func duration(_ setting: Setting) -> Duration {
        guard case .duration(let duration)? = value(setting) else {
            preconditionFailure("\(setting.name) is no duration")
        }
        return duration
    }

    func isOn(_ setting: Setting) -> Bool { value(setting) == .boolean(true) }

    private func value(_ setting: Setting) -> Value? { entry(setting)?.value }
}

/// How to reach Postgres.
enum DatabaseAddress: Sendable, Equatable {
    /// A URL or key=value pairs, for libpq; secret.
    case text(String)
    /// libpq finds it in the PG* variables.
    case libpqVariables
    /// Nothing is set: `dev` runs an embedded Postgres, all others refuse.
    case none
}

extension Settings {
    var database: DatabaseAddress {
        guard let entry = entry(.databaseURL) else { return .none }
        if case .text(let text)? = entry.value { return .text(text) }
        return entry.text == nil ? .none : .libpqVariables
    }

    var directURL: String? { text(.directURL) }
    /// Nil when no directory can be written to.
    var directory: String? { text(.directory) }
    var queues: [QueueSlots] { QueueSlots.read(string(.queues)) ?? [] }
    var slots: Int { integer(.slots) }
    var pool: Int { integer(.pool) }
    var statementTimeout: Duration { duration(.statementTimeout) }
    var drainTimeout: Duration { duration(.drainTimeout) }
    var poll: Duration { duration(.poll) }
    /// `auto`, `on` or `off`
    var prepare: String { string(.prepare) }
    var practice: Bool { isOn(.practice) }
    var logLevel: String { string(.logLevel) }
    var logFormat: String { string(.logFormat) }
    var clientRole: String { string(.clientRole) }
    var workerRole: String { string(.workerRole) }
    var adminRole: String { string(.adminRole) }
}
