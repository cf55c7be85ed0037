package import CommandKit

/// One capability that a program can have or leave out, with everything that belongs to it. `Rooms` in Composition lists them; help, the
/// completions, the table of settings, `doctor` and the workers are made from that list.
package struct Room: Sendable {
    /// As its folder in `sql` is called.
    package let name: String
    /// The rooms that its SQL calls or reads.
    package let needs: [String]
    package let settings: [Setting]
    /// What shows only once all settings have been read.
    package let judge: SettingsTable.Judge?
    /// A line for each noun of its verbs.
    package let nouns: [String: String]
    package let verbs: [Command]
    /// What `doctor` asks.
    package let checks: [RoomCheck]
    /// What it brings to one worker; nothing where the settings switch it off.
    package let parts: @Sendable (RoomContext) async throws -> RoomParts

    package init(
        _ name: String, needs: [String] = [], settings: [Setting] = [], judge: SettingsTable.Judge? = nil,
        nouns: [String: String] = [:], verbs: [Command] = [], checks: [RoomCheck] = [],
        parts: @escaping @Sendable (RoomContext) async throws -> RoomParts = { _ in RoomParts() }
    ) {
        self.name = name
        self.needs = needs
        self.settings = settings
        self.judge = judge
        self.nouns = nouns
        self.verbs = verbs
        self.checks = checks
        self.parts = parts
    }
}
