/// The settings and JSON: every command uses them.
@_exported public import JSON
@_exported public import SettingsKit
