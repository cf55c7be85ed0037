/// The fields of a head, in their order; upper and lower case in names do not matter.
package struct HTTPHeaders: Sendable, ExpressibleByDictionaryLiteral {
    private struct Field: Sendable {
        var start: Int32
        var colon: Int32
        var end: Int32
    }

    // One buffer for all: an answer's head is kept as it came, and texts are made only when they are read.
    private var bytes: [UInt8] = []
    private var fields: [Field] = []

    package init() {}

    package init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { add(name, value) }
    }

    package var count: Int { fields.count }
    package var isEmpty: Bool { fields.isEmpty }

    /// Adds a field, even if there is one of the same name. It is checked when it is sent.
    package mutating func add(_ name: String, _ value: String) {
        let start = bytes.count
        bytes.append(contentsOf: name.utf8)
        let colon = bytes.count
        bytes.append(contentsOf: value.utf8)
        fields.append(Field(start: Int32(start), colon: Int32(colon), end: Int32(bytes.count)))
    }

    /// Adds the field of a line of a head: "Name: value", with or without the line end. Ignores a line without a field.
    mutating func add(line: UnsafeRawBufferPointer) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0 else { return }
        var low = colon + 1
        var high = line.count
        while high > low, line[high - 1] <= 0x20 { high -= 1 }
        while low < high, line[low] == 0x20 || line[low] == 0x09 { low += 1 }
        let start = bytes.count
        bytes.append(contentsOf: line[..<colon])
        bytes.append(contentsOf: line[low..<high])
        fields.append(Field(start: Int32(start), colon: Int32(start + colon), end: Int32(bytes.count)))
    }

    /// The first value under this name.
    package subscript(name: String) -> String? {
        fields.first { matches($0, name) }.map(value)
    }

    package func all(_ name: String) -> [String] {
        fields.filter { matches($0, name) }.map(value)
    }

    package func contains(_ name: String) -> Bool { fields.contains { matches($0, name) } }

    /// Names and values as they were given.
    package var pairs: [(name: String, value: String)] {
        fields.map { (String(decoding: bytes[Int($0.start)..<Int($0.colon)], as: UTF8.self), value($0)) }
    }

    package mutating func remove(_ name: String) {
        fields = fields.filter { !matches($0, name) }
    }

    mutating func keep(_ names: [String]) {
        fields = fields.filter { field in names.contains { matches(field, $0) } }
    }

    private func value(_ field: Field) -> String {
        String(decoding: bytes[Int(field.colon)..<Int(field.end)], as: UTF8.self)
    }

    private func matches(_ field: Field, _ name: String) -> Bool {
        let name = name.utf8
        guard name.count == Int(field.colon - field.start) else { return false }
        return zip(bytes[Int(field.start)..<Int(field.colon)], name).allSatisfy { lowercased($0) == lowercased($1) }
    }

    /// Describes a field that must not be sent by its place, never by its text: a value may be a secret, and so may a misplaced name.
    var complaint: String? {
        for (index, field) in fields.enumerated() {
            let place = "header \(index + 1)"
            let name = bytes[Int(field.start)..<Int(field.colon)]
            if name.isEmpty || !name.allSatisfy(isTokenByte) {
                return "the name of \(place) is not a token (letters, digits and !#$%&'*+-.^_`|~)"
            }
            let value = bytes[Int(field.colon)..<Int(field.end)]
            if value.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7f }) {
                return "the value of \(place) has a line break, a NUL or another control character"
            }
            if let reserved = Self.reserved.first(where: { matches(field, $0) }) {
                return "\(reserved) is set by the transfer itself; leave it out"
            }
        }
        return nil
    }

    /// Two truths about where a body ends are how requests are smuggled.
    private static let reserved = [
        "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Keep-Alive", "TE", "Host",
    ]
}

func lowercased(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
}

/// The bytes of a token (RFC 9110, 5.6.2).
func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
    case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
        UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
        true
    default: false
    }
}
