/// Spans as OTLP sends them: an `ExportTraceServiceRequest` of opentelemetry-proto 1, in protobuf. It writes the few fields that it fills; the
/// numbers are those of `trace.proto`, `resource.proto` and `common.proto`.
package enum SpanEncoder {
    /// - Parameter resource: what this process is, such as `service.name`.
    package static func request(
        _ spans: [TraceSpan], resource: [TraceSpan.Attribute], scope: String, version: String
    ) -> [UInt8] {
        var named = ProtobufWriter()
        named.text(1, scope)
        named.text(2, version)
        var scoped = ProtobufWriter()
        scoped.message(1, named)
        for span in spans { scoped.message(2, message(span)) }
        var process = ProtobufWriter()
        for attribute in resource { process.message(1, message(attribute)) }
        var all = ProtobufWriter()
        all.message(1, process)
        all.message(2, scoped)
        var request = ProtobufWriter()
        request.message(1, all)
        return request.bytes
    }

    private static func message(_ span: TraceSpan) -> ProtobufWriter {
        var writer = ProtobufWriter()
        writer.numbers(1, [span.context.trace.high, span.context.trace.low])
        writer.numbers(2, [span.context.span.number])
        writer.text(3, span.context.state ?? "")
        if let parent = span.parent { writer.numbers(4, [parent.number]) }
        writer.text(5, span.name)
        writer.int(6, UInt64(span.kind.rawValue))
        writer.fixed(7, span.start)
        writer.fixed(8, span.end)
        for attribute in span.attributes { writer.message(9, message(attribute)) }
        for link in span.links { writer.message(13, message(link)) }
        switch span.status {
        case .unset: break
        case .ok: writer.message(15, status(code: 1, ""))
        case .error(let why): writer.message(15, status(code: 2, why))
        }
        // The flags of the context; bit 8 says that bit 9 is known, and bit 9 that the parent is another process's.
        writer.fixed(16, flags(span.context) | 0x100 | (span.isParentRemote ? 0x200 : 0))
        return writer
    }

    private static func flags(_ context: TraceContext) -> UInt32 { context.isSampled ? 1 : 0 }

    private static func message(_ link: TraceContext) -> ProtobufWriter {
        var writer = ProtobufWriter()
        writer.numbers(1, [link.trace.high, link.trace.low])
        writer.numbers(2, [link.span.number])
        writer.text(3, link.state ?? "")
        writer.fixed(6, flags(link) | 0x300)
        return writer
    }

    private static func status(code: UInt64, _ why: String) -> ProtobufWriter {
        var writer = ProtobufWriter()
        writer.text(2, why)
        writer.int(3, code)
        return writer
    }

    private static func message(_ attribute: TraceSpan.Attribute) -> ProtobufWriter {
        var value = ProtobufWriter()
        // One of several fields: it is written even where it is zero, because its presence says which it is.
        switch attribute.value {
        case .text(let text): value.text(1, text, evenEmpty: true)
        case .flag(let flag): value.int(2, flag ? 1 : 0, evenZero: true)
        case .int(let number): value.int(3, UInt64(bitPattern: Int64(number)), evenZero: true)
        }
        var writer = ProtobufWriter()
        writer.text(1, attribute.name)
        writer.message(2, value)
        return writer
    }
}

/// The wire format of protobuf, as far as spans need it.
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    private enum Wire: UInt64 {
        case varint = 0
        case eightBytes = 1
        case counted = 2
        case fourBytes = 5
    }

    private mutating func key(_ field: UInt64, _ wire: Wire) {
        varint(field << 3 | wire.rawValue)
    }

    private mutating func varint(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    mutating func int(_ field: UInt64, _ number: UInt64, evenZero: Bool = false) {
        guard number != 0 || evenZero else { return }
        key(field, .varint)
        varint(number)
    }

    mutating func fixed(_ field: UInt64, _ number: UInt64) {
        key(field, .eightBytes)
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func fixed(_ field: UInt64, _ number: UInt32) {
        key(field, .fourBytes)
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func text(_ field: UInt64, _ text: String, evenEmpty: Bool = false) {
        guard !text.isEmpty || evenEmpty else { return }
        key(field, .counted)
        varint(UInt64(text.utf8.count))
        bytes.append(contentsOf: text.utf8)
    }

    /// As bytes, the most significant first: so identifiers are written.
    mutating func numbers(_ field: UInt64, _ numbers: [UInt64]) {
        key(field, .counted)
        varint(UInt64(numbers.count * 8))
        for number in numbers { withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) } }
    }

    mutating func message(_ field: UInt64, _ message: ProtobufWriter) {
        key(field, .counted)
        varint(UInt64(message.bytes.count))
        bytes.append(contentsOf: message.bytes)
    }
}
