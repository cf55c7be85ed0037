/// The kit of the command line with the settings and JSON: every room has verbs and settings.
@_exported public import CommandKit
