import Foundation

/// JSON as the gateway reads and writes it.
enum AppJSON {
    /// The same value has the same bytes each time: the key of a repeated call stands for them.
    static func encode(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var one = encoder.singleValueContainer()
            try one.encode(InstantCoding.text(date))
        }
        return try encoder.encode(value)
    }

    static func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .custom { decoder in
            let one = try decoder.singleValueContainer()
            let text = try one.decode(String.self)
            guard let date = InstantCoding.date(text) else {
                throw DecodingError.dataCorruptedError(in: one, debugDescription: "\(text) is not an instant")
            }
            return date
        }
        return try decoder.decode(type, from: data)
    }

    /// A value that came as a part of something else.
    static func decode<Value: Decodable>(_ type: Value.Type, from value: AppValue) throws -> Value {
        try decode(type, from: encode(value))
    }
}

extension AppValue {
    init(_ text: String?) { self = text.map { .string($0) } ?? .null }
    init(_ number: Int?) { self = number.map { .int(Int64($0)) } ?? .null }
    init(_ id: UUID?) { self = id.map { .string($0.uuidString.lowercased()) } ?? .null }
    init(_ date: Date?) { self = date.map { .string(InstantCoding.text($0)) } ?? .null }
    init(_ span: Duration?) { self = span.map { .string(SpanCoding.text($0)) } ?? .null }
    init(_ day: AppDay?) { self = day.map { .string($0.description) } ?? .null }
    init(_ texts: [String]?) { self = texts.map { .array($0.map { .string($0) }) } ?? .null }
}
