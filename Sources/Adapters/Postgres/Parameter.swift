package import FoundationEssentials

/// A value on its way to the server, in Postgres's binary form.
package struct Parameter: Sendable {
    let type: UInt32
    let bytes: [UInt8]?

    private init(_ type: TypeID, _ bytes: [UInt8]?) {
        self.type = type.rawValue
        self.bytes = bytes
    }

    package static func bool(_ value: Bool?) -> Parameter {
        Parameter(.bool, value.map { [$0 ? 1 : 0] })
    }
    package static func int2(_ value: Int16?) -> Parameter {
        Parameter(.int2, value.map { bigEndian($0) })
    }
    package static func int4(_ value: Int32?) -> Parameter {
        Parameter(.int4, value.map { bigEndian($0) })
    }
    package static func int8(_ value: Int64?) -> Parameter {
        Parameter(.int8, value.map { bigEndian($0) })
    }
    package static func float8(_ value: Double?) -> Parameter {
        Parameter(.float8, value.map { bigEndian($0.bitPattern) })
    }
    package static func text(_ value: String?) -> Parameter {
        Parameter(.text, value.map { Array($0.utf8) })
    }
    package static func bytea(_ value: [UInt8]?) -> Parameter {
        Parameter(.bytea, value)
    }
    /// JSON text; the server checks it.
    package static func json(_ value: [UInt8]?) -> Parameter {
        Parameter(.jsonb, value.map { [1] + $0 })
    }
    package static func json(_ value: String?) -> Parameter {
        json(value.map { Array($0.utf8) })
    }
    package static func timestamp(_ value: Date?) -> Parameter {
        Parameter(.timestamptz, value.map { bigEndian(Timestamp.microseconds(of: $0)) })
    }

    package static func bools(_ values: [Bool]?) -> Parameter {
        array(.bools, of: .bool, values, width: 1) { $1.append($0 ? 1 : 0) }
    }
    package static func int2s(_ values: [Int16]?) -> Parameter {
        array(.int2s, of: .int2, values, width: 2) { append($0, to: &$1) }
    }
    package static func int4s(_ values: [Int32]?) -> Parameter {
        array(.int4s, of: .int4, values, width: 4) { append($0, to: &$1) }
    }
    package static func int8s(_ values: [Int64]?) -> Parameter {
        array(.int8s, of: .int8, values, width: 8) { append($0, to: &$1) }
    }
    package static func float8s(_ values: [Double]?) -> Parameter {
        array(.float8s, of: .float8, values, width: 8) { append($0.bitPattern, to: &$1) }
    }
    package static func texts(_ values: [String?]?) -> Parameter {
        guard let values else { return Parameter(.texts, nil) }
        var out = header(of: .text, count: values.count, nullable: values.contains { $0 == nil })
        for value in values {
            guard let value else {
                append(Int32(-1), to: &out)
                continue
            }
            append(Int32(value.utf8.count), to: &out)
            out.append(contentsOf: value.utf8)
        }
        return Parameter(.texts, out)
    }

    private static func array<Element>(
        _ type: TypeID, of element: TypeID, _ values: [Element]?, width: Int, _ write: (Element, inout [UInt8]) -> Void
    ) -> Parameter {
        guard let values else { return Parameter(type, nil) }
        var out = header(of: element, count: values.count, nullable: false)
        out.reserveCapacity(out.count + values.count * (4 + width))
        for value in values {
            append(Int32(width), to: &out)
            write(value, &out)
        }
        return Parameter(type, out)
    }

    private static func header(of element: TypeID, count: Int, nullable: Bool) -> [UInt8] {
        var out: [UInt8] = []
        append(Int32(count == 0 ? 0 : 1), to: &out)
        append(Int32(nullable ? 1 : 0), to: &out)
        append(element.rawValue, to: &out)
        if count > 0 {
            append(Int32(count), to: &out)
            append(Int32(1), to: &out)
        }
        return out
    }
}

/// The types we speak, by the numbers they have in every Postgres.
enum TypeID: UInt32 {
    case bool = 16
    case bytea = 17
    case int8 = 20
    case int2 = 21
    case int4 = 23
    case text = 25
    case float8 = 701
    case timestamptz = 1184
    case jsonb = 3802
    case bools = 1000
    case int2s = 1005
    case int4s = 1007
    case texts = 1009
    case int8s = 1016
    case float8s = 1022
}

enum Timestamp {
    private static let epoch = 946_684_800.0  // 2000-01-01, where Postgres counts from

    static func microseconds(of date: Date) -> Int64 {
        // Clamped well outside of Postgres's calendar, which then refuses it with a sentence.
        Int64(min(max((date.timeIntervalSince1970 - epoch) * 1e6, -9.2e18), 9.2e18).rounded())
    }
    static func date(microseconds: Int64) -> Date {
        Date(timeIntervalSince1970: Double(microseconds) / 1e6 + epoch)
    }
}

private func append(_ value: some FixedWidthInteger, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
}

private func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
}
