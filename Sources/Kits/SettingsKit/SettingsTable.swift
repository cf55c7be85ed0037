/// The settings of a program.
package struct SettingsTable: Sendable {
    /// What shows only once all settings have been read: it adds problems and warnings.
    package typealias Judge = @Sendable (inout Settings) -> Void

    package let settings: [Setting]
    package let judges: [Judge]

    package init(_ settings: [Setting], judges: [Judge] = []) {
        self.settings = settings
        self.judges = judges
    }

    /// Without any room's.
    package static let core = SettingsTable(
        Setting.connection + Setting.worker + Setting.supervision + Setting.listening + Setting.tracing + Setting.links
            + Setting.mailing + Setting.sealing + Setting.roles + Setting.terminal, judges: [{ $0.judgeDatabases() }])
}
