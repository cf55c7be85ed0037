/// The settings and what puts a worker together: nearly every command uses them.
@_exported public import Composition
