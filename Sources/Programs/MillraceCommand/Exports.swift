/// The settings, what puts a worker together and JSON: nearly every command uses them.
@_exported public import Composition
@_exported public import JSON
