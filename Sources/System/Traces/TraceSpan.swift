/// Something that was done, from when to when, and what it belongs to: a span of OpenTelemetry.
package struct TraceSpan: Sendable, Equatable {
    /// As OpenTelemetry numbers them.
    package enum Kind: Int, Sendable {
        /// Within one process.
        case `internal` = 1
        /// Answers a call.
        case server = 2
        /// Calls somebody.
        case client = 3
        /// Puts a message somewhere.
        case producer = 4
        /// Takes a message from there.
        case consumer = 5
    }

    package enum Status: Sendable, Equatable {
        case unset, ok
        case error(String)
    }

    package enum Value: Sendable, Equatable {
        case text(String)
        case int(Int)
        case flag(Bool)
    }

    package struct Attribute: Sendable, Equatable {
        package var name: String
        package var value: Value

        package init(_ name: String, _ value: Value) {
            self.name = name
            self.value = value
        }

        package static func text(_ name: String, _ value: String) -> Attribute { Attribute(name, .text(value)) }
        package static func int(_ name: String, _ value: Int) -> Attribute { Attribute(name, .int(value)) }
    }

    package var context: TraceContext
    /// nil: it is the first of its trace.
    package var parent: SpanID?
    /// Whether the parent is another process's.
    package var isParentRemote = false
    package var name: String
    package var kind: Kind
    /// Nanoseconds since 1970.
    package var start: UInt64
    package var end: UInt64
    package var attributes: [Attribute] = []
    /// Other places that it has to do with.
    package var links: [TraceContext] = []
    package var status = Status.unset

    package init(context: TraceContext, parent: SpanID?, name: String, kind: Kind, start: UInt64, end: UInt64 = 0) {
        self.context = context
        self.parent = parent
        self.name = name
        self.kind = kind
        self.start = start
        self.end = end
    }
}
