import Faults
import JSON

/// The body of a push: `{"device": …, "ops": […]}`. Each operation is read by itself, so one that cannot be read holds back no other: it is
/// replaced by a stand-in that the database refuses, with its id if that can be found.
struct SyncBody {
    private(set) var device: JSONValue?
    /// A JSON text.
    private(set) var ops = "null"
    /// Of operations.
    private(set) var count = 0

    /// Of the whole body, of which an operation stands two levels below the top.
    static let deepest = 64

    init(_ bytes: [UInt8]) throws(GatewayProblem) {
        let (members, isWhole) = JSONOutline(bytes).members()
        guard isWhole else {
            // The strict reader says what is wrong.
            _ = try GatewayBody.object(bytes)
            throw GatewayProblem(.invalid, "the body should be an object with device and ops")
        }
        var seen: Set<String> = []
        for (key, value) in members {
            let name = try Self.read(bytes[key], deepest: 1).text ?? ""
            guard seen.insert(name).inserted else {
                throw GatewayProblem(.invalid, JSONReader.repeatedKey, field: String(name.prefix(100)))
            }
            switch name {
            case "device": device = try Self.read(bytes[value], deepest: Self.deepest)
            case "ops": try take(Array(bytes[value]))
            default:
                throw GatewayProblem(
                    .invalid, "a push has no member of that name", field: String(name.prefix(100)),
                    hint: "it has device and ops")
            }
        }
    }

    private mutating func take(_ bytes: [UInt8]) throws(GatewayProblem) {
        guard let places = JSONOutline(bytes).elements() else {
            ops = try Self.read(bytes[...], deepest: Self.deepest).compact
            return
        }
        count = places.count
        guard count <= SyncRoutes.mostOperations else {
            throw GatewayProblem(
                .invalid, "ops is not a list of 1 to \(SyncRoutes.mostOperations) operations", field: "ops",
                hint: "send more in several calls")
        }
        var list = Array("[".utf8)
        for (number, place) in places.enumerated() {
            if number > 0 { list.append(UInt8(ascii: ",")) }
            let operation = bytes[place]
            if (try? Self.read(operation, deepest: Self.deepest - 2)) != nil {
                list += operation
            } else {
                list += Self.standIn(for: Array(operation))
            }
        }
        list.append(UInt8(ascii: "]"))
        ops = String(decoding: list, as: UTF8.self)
    }

    private static func read(_ bytes: ArraySlice<UInt8>, deepest: Int) throws(GatewayProblem) -> JSONValue {
        do {
            var reader = JSONReader(
                Array(bytes), rules: JSONReader.Rules(deepest: deepest, allowsRepeatedKeys: false))
            return try reader.document()
        } catch {
            throw GatewayProblem(error)
        }
    }

    private static func standIn(for operation: [UInt8]) -> [UInt8] {
        var members = [JSONValue.Member(key: "unreadable", value: .bool(true))]
        // Also of one whose end is not where it should be.
        let id = JSONOutline(operation).members().found
            .first { operation[$0.key].elementsEqual(#""id""#.utf8) }
            .flatMap { try? read(operation[$0.value], deepest: 1).text }
        if let id { members.append(JSONValue.Member(key: "id", value: .string(String(id.prefix(100))))) }
        return Array(JSONValue.object(members).compact.utf8)
    }
}

/// Where the parts of a JSON text stand, by its quotes and brackets alone: whatever is in the parts, it finds them.
struct JSONOutline {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The places of the keys, with their quotes, and of the values, until the text stops being an object.
    func members() -> (found: [(key: Range<Int>, value: Range<Int>)], isWhole: Bool) {
        var reader = self
        var found: [(key: Range<Int>, value: Range<Int>)] = []
        let isWhole = reader.list(UInt8(ascii: "{"), UInt8(ascii: "}")) { reader in
            guard reader.next == UInt8(ascii: "\""), let key = reader.value() else { return false }
            guard reader.takes(UInt8(ascii: ":")), let value = reader.value() else { return false }
            found.append((key, value))
            return true
        }
        return (found, isWhole)
    }

    /// Nil if this is not a list.
    func elements() -> [Range<Int>]? {
        var reader = self
        var found: [Range<Int>] = []
        let isWhole = reader.list(UInt8(ascii: "["), UInt8(ascii: "]")) { reader in
            guard let value = reader.value() else { return false }
            found.append(value)
            return true
        }
        return isWhole ? found : nil
    }

    private mutating func list(_ open: UInt8, _ close: UInt8, _ each: (inout JSONOutline) -> Bool) -> Bool {
        guard takes(open) else { return false }
        if !takes(close) {
            repeat {
                guard each(&self) else { return false }
            } while takes(UInt8(ascii: ","))
            guard takes(close) else { return false }
        }
        return next == nil
    }

    /// The next byte that is no space.
    private var next: UInt8? {
        mutating get {
            while position < bytes.count, Self.isSpace(bytes[position]) { position += 1 }
            return position < bytes.count ? bytes[position] : nil
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x20, 0x09, 0x0a, 0x0d: true
        default: false
        }
    }

    /// Whether a number or a word such as `null` is over.
    private static func ends(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "]"), UInt8(ascii: "}"), UInt8(ascii: "\""): true
        default: isSpace(byte)
        }
    }

    private mutating func takes(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    /// nil: there is none, or it has no end.
    private mutating func value() -> Range<Int>? {
        guard let first = next else { return nil }
        let start = position
        switch first {
        case UInt8(ascii: "\""): guard skipText() else { return nil }
        case UInt8(ascii: "{"), UInt8(ascii: "["): guard skipBrackets() else { return nil }
        default:
            while position < bytes.count, !Self.ends(bytes[position]) { position += 1 }
        }
        return position > start ? start..<position : nil
    }

    private mutating func skipText() -> Bool {
        position += 1
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                position += 1
                return true
            case UInt8(ascii: "\\"): position += 2
            default: position += 1
            }
        }
        return false
    }

    private mutating func skipBrackets() -> Bool {
        var depth = 0
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""): guard skipText() else { return false }
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                position += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                position += 1
                if depth == 0 { return true }
            default: position += 1
            }
        }
        return false
    }
}
