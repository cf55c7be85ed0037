/// A place in a trace, as W3C Trace Context writes it into `traceparent` and `tracestate`.
package struct TraceContext: Sendable, Equatable {
    package var trace: TraceID
    package var span: SpanID
    /// Whether the caller records this trace.
    package var isSampled: Bool
    /// What tracing systems tell each other along the way; nil: nothing, or something malformed.
    package var state: String?
    /// The span of another tracing system that this place is; nil: it is one of ours, or somebody else's.
    package var outside: HeldOutside?

    /// What runs now belongs to; nil: to no trace.
    @TaskLocal package static var current: TraceContext?

    package init(trace: TraceID, span: SpanID, isSampled: Bool, state: String? = nil) {
        self.trace = trace
        self.span = span
        self.isSampled = isSampled
        self.state = state
    }

    /// nil: it is malformed, and then there is no caller. A later version may add parts at the end, which are left out.
    package init?(traceparent: String, tracestate: String? = nil) {
        let bytes = Array(traceparent.utf8)
        guard bytes.count >= Self.length, bytes.count <= Self.longest else { return nil }
        let dash = UInt8(ascii: "-")
        guard bytes[2] == dash, bytes[35] == dash, bytes[52] == dash else { return nil }
        guard let version = HexDigits.byte(bytes[0..<2]), version != 0xFF else { return nil }
        guard bytes.count == Self.length || (version > 0 && bytes[Self.length] == dash) else { return nil }
        guard let high = HexDigits.number(bytes[3..<19]), let low = HexDigits.number(bytes[19..<35]),
            let trace = TraceID(high: high, low: low), let number = HexDigits.number(bytes[36..<52]),
            let span = SpanID(number), let flags = HexDigits.byte(bytes[53..<55])
        else { return nil }
        self.init(
            trace: trace, span: span, isSampled: flags & 1 == 1,
            state: tracestate.flatMap { TraceContext.isValid(state: $0) ? $0 : nil })
    }

    /// Of version 00.
    private static let length = 55
    /// Nobody has a reason to send more.
    private static let longest = 256

    package var traceparent: String { "00-\(trace.text)-\(span.text)-\(isSampled ? "01" : "00")" }

    /// Entries such as `vendor=value`, at most 32 in 512 characters.
    static func isValid(state: String) -> Bool {
        guard (1...512).contains(state.utf8.count) else { return false }
        let entries = state.split(separator: ",")
        guard !entries.isEmpty, entries.count <= 32 else { return false }
        return entries.allSatisfy { entry in
            let trimmed = entry.drop { $0 == " " || $0 == "\t" }
            guard let equals = trimmed.firstIndex(of: "="), equals != trimmed.startIndex else { return false }
            let value = trimmed[trimmed.index(after: equals)...]
            return trimmed[..<equals].utf8.allSatisfy(isKeyByte) && !value.isEmpty
                && value.utf8.allSatisfy { (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") }
        }
    }

    private static func isKeyByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "*"), UInt8(ascii: "/"), UInt8(ascii: "@"): true
        default: false
        }
    }
}

extension TraceContext {
    /// Runs `body` as a part of this place; nil: as it is.
    nonisolated(nonsending) package static func within<Value, Failure>(
        _ context: TraceContext?, _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        guard let context else { return try await body() }
        let outcome: Result<Value, Failure> = await $current.withValue(context) {
            guard let outside = context.outside else { return await result(of: body) }
            var inner: Result<Value, Failure>?
            await outside.span.within { inner = await result(of: body) }
            if let inner { return inner }
            return await result(of: body)  // the other system has not called it
        }
        return try outcome.get()
    }

    nonisolated(nonsending) private static func result<Value, Failure>(
        of body: () async throws(Failure) -> Value
    ) async -> Result<Value, Failure> {
        do throws(Failure) {
            return .success(try await body())
        } catch {
            return .failure(error)
        }
    }
}
