import FoundationEssentials

/// A value to keep with its job, as JSON text that the database accepts.
package enum StoredJSON {
    /// The largest size of one kept value, in bytes of JSON: 1 MiB.
    package static let largest = 1_048_576

    /// Why a value cannot be kept.
    package enum Unfit: Error, Equatable {
        case tooLarge(Int)
        case noJSON(String)
    }

    package static func json(_ value: some Encodable) throws(Unfit) -> [UInt8] {
        let bytes: [UInt8]
        do {
            bytes = Array(try JSONEncoder().encode(value))
        } catch {
            throw .noJSON("\(type(of: value)) cannot be written as JSON")
        }
        if bytes.count > largest { throw .tooLarge(bytes.count) }
        if holdsNUL(bytes) { throw .noJSON("a text in it contains a NUL character, which Postgres cannot store") }
        return bytes
    }

    /// The encoder writes NUL as an escape; a backslash after a backslash does not begin one.
    static func holdsNUL(_ json: [UInt8]) -> Bool {
        let escape = Array("u0000".utf8)
        var index = 0
        while let slash = json[index...].firstIndex(of: UInt8(ascii: "\\")) {
            if json[(slash + 1)...].starts(with: escape) { return true }
            index = min(slash + 2, json.count)
        }
        return false
    }
}
