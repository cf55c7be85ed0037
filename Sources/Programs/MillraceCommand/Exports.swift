/// The kit of the command line, what puts a worker together, and JSON: nearly every command uses them.
@_exported public import CommandKit
@_exported public import Composition
@_exported public import JSON
