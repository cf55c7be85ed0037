package import SettingsKit

/// A setting of a room of another package: an environment variable. `millrace config` shows it, and a value that cannot be used is told
/// together with those of Millrace's own settings, before anything starts. `RoomDatabase.value(of:)` reads it.
public struct RoomSetting: Sendable {
    package let setting: Setting

    /// - Parameters:
    ///   - variable: Its name, such as `SHELF_DAYS`: the room's name, and what it is. It meets nobody else's so.
    ///   - fallback: The value where nobody gives one; nil: there is none.
    ///   - isSecret: The value is shown nowhere, and may stand in the file that `<variable>_FILE` names.
    ///   - help: What it is for, in one sentence.
    ///   - complaint: What is wrong with a value, such as `takes a number of days`; nil: nothing is.
    public init(
        _ variable: String, fallback: String? = nil, isSecret: Bool = false, help: String,
        complaint: @escaping @Sendable (String) -> String? = { _ in nil }
    ) {
        setting = Setting(
            variable.lowercased().replacing("_", with: "-"), environment: variable,
            .custom(expects: "a text", complaint: complaint), fallback: fallback, secrecy: isSecret ? .hidden : .open,
            help: help)
    }
}

extension Room {
    /// Refuses a setting whose name might be somebody else's.
    package func checkSettings() throws(Failure) {
        let beginning = name.uppercased() + "_"
        guard let strange = settings.first(where: { !$0.environment.hasPrefix(beginning) }) else { return }
        throw Failure(
            .misused, "the room \(name) has a setting \(strange.environment)",
            hint: "give it a name that begins with \(beginning)")
    }
}
