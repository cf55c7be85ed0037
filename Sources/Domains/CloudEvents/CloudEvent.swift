/// An event in the form of CloudEvents 1.0. ``complaint`` checks its contents, and so does every reader.
package struct CloudEvent: Sendable, Equatable {
    /// The value of an extension. From headers it is always a text, because headers carry no types.
    package enum Value: Sendable, Equatable {
        case string(String)
        case integer(Int32)
        case boolean(Bool)

        /// As the specification spells it.
        package var text: String {
            switch self {
            case .string(let text): text
            case .integer(let number): String(number)
            case .boolean(let isTrue): isTrue ? "true" : "false"
            }
        }
    }

    package enum Payload: Sendable, Equatable {
        /// A JSON document, as it was written.
        case json([UInt8])
        case text(String)
        case bytes([UInt8])
    }

    package var id: String
    package var source: String
    package var type: String
    package var subject: String?
    /// RFC 3339.
    package var time: String?
    package var dataContentType: String?
    package var dataSchema: String?
    package var extensions: [String: Value] = [:]
    package var data: Payload?

    package static let version = "1.0"
    /// The size that every intermediary must accept, in bytes.
    package static let largest = 65_536

    package init(id: String, source: String, type: String) {
        self.id = id
        self.source = source
        self.type = type
    }

    /// All attributes except the content type, by name, in the order in which they are written.
    var attributes: [(name: String, value: Value)] {
        var found: [(name: String, value: Value)] = [
            ("specversion", .string(Self.version)), ("id", .string(id)), ("source", .string(source)),
            ("type", .string(type)),
        ]
        for (name, value) in [("subject", subject), ("time", time), ("dataschema", dataSchema)] {
            if let value { found.append((name, .string(value))) }
        }
        return found + extensions.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
    }
}

/// Why something is not a valid event. It names the attribute and the mistake, and never the value.
package struct CloudEventError: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
