/// How events travel in HTTP messages.
package enum ContentMode: String, Sendable, CaseIterable {
    /// Attributes in headers, data in the body.
    case binary
    /// One event in the JSON format.
    case structured
    /// A list of events. Used only where the receiver accepts lists.
    case batch
}

/// The parts of an HTTP message that carry an event.
package struct EventMessage: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package var fields: [Field]
    package var body: [UInt8]

    package init(fields: [Field], body: [UInt8]) {
        self.fields = fields
        self.body = body
    }

    package static let structuredType = "application/cloudevents+json"
    package static let batchType = "application/cloudevents-batch+json"

    /// One event, in any mode; in batch mode it is a list of one.
    package init(_ event: CloudEvent, _ mode: ContentMode) {
        switch mode {
        case .binary: self.init(binary: event)
        case .structured: self.init(fields: [Field("Content-Type", Self.structuredType)], body: event.json)
        case .batch: self.init(batch: [event])
        }
    }

    package init(batch events: [CloudEvent]) {
        self.init(fields: [Field("Content-Type", Self.batchType)], body: CloudEvent.json(batch: events))
    }

    private init(binary event: CloudEvent) {
        fields = event.attributes.map { Field("ce-\($0.name)", HeaderText.encode($0.value.text)) }
        var type = event.dataContentType
        switch event.data {
        case .json(let bytes):
            body = bytes
            // In the JSON format data without a type are JSON; in a header only this says so.
            type = type ?? "application/json"
        case .text(let text): body = Array(text.utf8)
        case .bytes(let bytes): body = bytes
        case nil: body = []
        }
        if let type { fields.append(Field("Content-Type", type)) }
    }

    /// The bytes of header names, header values and body.
    package var size: Int { fields.reduce(body.count) { $0 + $1.name.utf8.count + $1.value.utf8.count } }

    func values(_ name: String) -> [String] {
        fields.filter { $0.name.lowercased() == name }.map(\.value)
    }
}

/// Received events, and the mode in which they came.
package struct ReceivedEvents: Sendable, Equatable {
    package var mode: ContentMode
    package var events: [CloudEvent]

    package init(_ message: EventMessage) throws(CloudEventError) {
        let types = message.values("content-type")
        guard types.count <= 1 else { throw CloudEventError("there are several Content-Type headers") }
        switch types.first.map(Rules.essence) {
        case EventMessage.structuredType: (mode, events) = (.structured, [try CloudEvent(json: message.body)])
        case EventMessage.batchType: (mode, events) = (.batch, try CloudEvent.batch(json: message.body))
        case let type? where type.hasPrefix("application/cloudevents"):
            throw CloudEventError("events are read in the JSON format only")
        default: (mode, events) = (.binary, [try Self.binary(message, type: types.first)])
        }
    }

    private static func binary(_ message: EventMessage, type: String?) throws(CloudEventError) -> CloudEvent {
        var texts: [String: String] = [:]
        var extensions: [String: CloudEvent.Value] = [:]
        for field in message.fields {
            let header = field.name.lowercased()
            guard header.hasPrefix("ce-") else { continue }
            let name = String(header.dropFirst(3))
            guard Rules.isName(name), name != "data", name != "datacontenttype" else {
                throw CloudEventError("a header has an attribute with a forbidden name")
            }
            guard texts[name] == nil, extensions[name] == nil else {
                throw CloudEventError("the header of \(name) is there twice")
            }
            guard let value = HeaderText.decode(field.value) else {
                throw CloudEventError("the header of \(name) is not text in UTF-8")
            }
            if Rules.taken.contains(name) {
                texts[name] = value
            } else {
                extensions[name] = .string(value)
            }
        }
        if let type { texts["datacontenttype"] = type }
        var event = try CloudEvent.checked(texts, extensions)
        if let type, Rules.isJSON(type), !message.body.isEmpty {
            try StrictJSON.check(message.body)
            event.data = .json(message.body)
        } else if !message.body.isEmpty {
            event.data = .bytes(message.body)
        }
        return event
    }
}
