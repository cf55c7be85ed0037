import FoundationEssentials
package import Traces

extension NewJob {
    /// Makes it a part of a trace, unless its metadata names one: `traceparent` and `tracestate` are headers of W3C Trace Context. One that is
    /// malformed is left out.
    public mutating func carry(traceparent: String, tracestate: String? = nil) {
        guard let place = TraceContext(traceparent: traceparent, tracestate: tracestate) else { return }
        metadata = place.carried(in: metadata)
    }
}

/// A job's metadata carries the place in a trace at which it was enqueued, in the fields `traceparent` and `tracestate`.
extension TraceContext {
    private struct Carried: Decodable {
        var traceparent: String
        var tracestate: String?
    }

    private static let field = Array("\"traceparent\"".utf8)

    /// The place that a job's metadata names; nil: none, or something else under that name.
    package static func carried(by metadata: [UInt8]?) -> TraceContext? {
        // Most jobs have none, and reading JSON costs more than this look.
        guard let metadata, metadata.firstRange(of: field) != nil,
            let carried = try? JSONDecoder().decode(Carried.self, from: Data(metadata))
        else { return nil }
        return TraceContext(traceparent: carried.traceparent, tracestate: carried.tracestate)
    }

    /// The metadata of a job that is enqueued here. What it names itself stays.
    package func carried(in metadata: [UInt8]?) -> [UInt8] {
        let given = metadata ?? Array("{}".utf8)
        // The database refuses metadata that is not an object.
        guard given.first == UInt8(ascii: "{"), given.firstRange(of: Self.field) == nil else { return given }
        var fields = "{\"traceparent\": \"\(traceparent)\""
        if let state {
            let escaped = state.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            fields += ", \"tracestate\": \"\(escaped)\""
        }
        let rest = given.dropFirst().drop { " \t\r\n".utf8.contains($0) }
        return Array(fields.utf8) + (rest.first == UInt8(ascii: "}") ? [] : Array(", ".utf8)) + rest
    }
}
