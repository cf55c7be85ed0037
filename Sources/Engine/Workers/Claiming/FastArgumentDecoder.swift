import FoundationEssentials

/// Reads short arguments without the fixed cost that `JSONDecoder` has for each document. It declines everything difficult (an error, an
/// escape, a date, a fraction of many digits); then its result is dropped, and `JSONDecoder` reads the text from the start. So both always
/// agree on what a text means.
enum FastArgumentDecoder {
    /// Longer ones are read by `JSONDecoder`: a key is looked for from the front each time.
    static let most = 512

    /// nil: declined.
    static func decode<Value: Decodable>(_ type: Value.Type, from text: [UInt8]) -> Value? {
        guard text.count <= most else { return nil }
        return text.withUnsafeBytes { bytes in
            let source = Source(Cursor(bytes: bytes))
            var end = source.text.afterSpace(0)
            guard source.text.skip(&end, depth: 0), source.text.afterSpace(end) == bytes.count,
                let value = try? source.read(type, at: source.text.afterSpace(0)), !source.declined
            else { return nil }
            return value
        }
    }

    /// Thrown where a value is not what was asked for, or not for us to say.
    private struct Declined: Error {}

    /// The text, and where in it what stands.
    private struct Cursor {
        let bytes: UnsafeRawBufferPointer

        /// 0 behind the end, which no text that we read has in it.
        subscript(_ at: Int) -> UInt8 { at < bytes.count ? bytes[at] : 0 }

        func afterSpace(_ at: Int) -> Int {
            var at = at
            while self[at] == 0x20 || self[at] == 0x0A || self[at] == 0x0D || self[at] == 0x09 { at += 1 }
            return at
        }

        /// Steps over a value; false where there is none, or one that is not ours to read.
        func skip(_ at: inout Int, depth: Int) -> Bool {
            switch self[at] {
            case UInt8(ascii: "{"): return skipMembers(&at, until: UInt8(ascii: "}"), depth: depth)
            case UInt8(ascii: "["): return skipMembers(&at, until: UInt8(ascii: "]"), depth: depth)
            case UInt8(ascii: "\""): return skipString(&at)
            case UInt8(ascii: "t"): return skip("true", &at)
            case UInt8(ascii: "f"): return skip("false", &at)
            case UInt8(ascii: "n"): return skip("null", &at)
            default: return skipNumber(&at)
            }
        }

        private func skipMembers(_ at: inout Int, until end: UInt8, depth: Int) -> Bool {
            guard depth < 16 else { return false }
            let isObject = end == UInt8(ascii: "}")
            at = afterSpace(at + 1)
            if self[at] == end {
                at += 1
                return true
            }
            while true {
                if isObject {
                    guard self[at] == UInt8(ascii: "\""), skipString(&at, below: 0x80) else { return false }
                    at = afterSpace(at)
                    guard self[at] == UInt8(ascii: ":") else { return false }
                    at = afterSpace(at + 1)
                }
                guard skip(&at, depth: depth + 1) else { return false }
                at = afterSpace(at)
                if self[at] == end {
                    at += 1
                    return true
                }
                guard self[at] == UInt8(ascii: ",") else { return false }
                at = afterSpace(at + 1)
            }
        }

        /// Names in ASCII alone: others can be the same in several spellings.
        private func skipString(_ at: inout Int, below most: UInt8 = 0xFF) -> Bool {
            at += 1
            while self[at] >= 0x20, self[at] < most, self[at] != UInt8(ascii: "\\") {
                at += 1
                if self[at - 1] == UInt8(ascii: "\"") { return true }
            }
            return false
        }

        private func skip(_ word: StaticString, _ at: inout Int) -> Bool {
            let end = at + word.utf8CodeUnitCount
            let wanted = UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
            guard end <= bytes.count, bytes[at..<end].elementsEqual(wanted) else { return false }
            at = end
            return true
        }

        /// Digits, perhaps with a sign and a fraction, and no leading zero; no exponent.
        private func skipNumber(_ at: inout Int) -> Bool {
            if self[at] == UInt8(ascii: "-") { at += 1 }
            let first = at
            skipDigits(&at)
            guard at > first, self[first] != UInt8(ascii: "0") || at == first + 1 else { return false }
            guard self[at] == UInt8(ascii: ".") else { return true }
            at += 1
            let fraction = at
            skipDigits(&at)
            return at > fraction
        }

        private func skipDigits(_ at: inout Int) {
            while self[at] >= UInt8(ascii: "0"), self[at] <= UInt8(ascii: "9") { at += 1 }
        }
    }
}

extension FastArgumentDecoder {
    private final class Source {
        let text: Cursor
        /// Something was asked that is not ours to answer. It stays, for a type may catch what we throw.
        private(set) var declined = false

        init(_ text: Cursor) {
            self.text = text
        }

        func decline() -> Declined {
            declined = true
            return Declined()
        }

        func isNull(at: Int) -> Bool { text[at] == UInt8(ascii: "n") }

        func read<Value: Decodable>(_ type: Value.Type, at: Int) throws -> Value {
            func same<Read>(_ value: Read) throws -> Value {
                guard let value = value as? Value else { throw decline() }
                return value
            }
            if type == Int.self { return try same(integer(at: at) as Int) }
            if type == String.self { return try same(string(at: at)) }
            if type == Bool.self { return try same(bool(at: at)) }
            if type == Double.self { return try same(double(at: at)) }
            if type == Int64.self { return try same(integer(at: at) as Int64) }
            if type == Int32.self { return try same(integer(at: at) as Int32) }
            if type == Int16.self { return try same(integer(at: at) as Int16) }
            if type == Int8.self { return try same(integer(at: at) as Int8) }
            if type == UInt.self { return try same(integer(at: at) as UInt) }
            if type == UInt64.self { return try same(integer(at: at) as UInt64) }
            if type == UInt32.self { return try same(integer(at: at) as UInt32) }
            if type == UInt16.self { return try same(integer(at: at) as UInt16) }
            if type == UInt8.self { return try same(integer(at: at) as UInt8) }
            // Those of JSON's own forms, which their initializers do not know, and those that would ask themselves.
            if type == Date.self || type == Data.self || type == URL.self || type == Decimal.self || type == Float.self
                || type == Int128.self || type == UInt128.self
            {
                throw decline()
            }
            return try Value(from: Reader(source: self, at: at))
        }

        private func bool(at: Int) throws -> Bool {
            switch text[at] {
            case UInt8(ascii: "t"): true
            case UInt8(ascii: "f"): false
            default: throw decline()
            }
        }

        private func string(at: Int) throws -> String {
            guard text[at] == UInt8(ascii: "\""), let string = String(validating: inside(at), as: UTF8.self) else {
                throw decline()
            }
            return string
        }

        /// What stands between the quotes.
        func inside(_ at: Int) -> Slice<UnsafeRawBufferPointer> {
            var end = at
            _ = text.skip(&end, depth: 0)
            return text.bytes[(at + 1)..<(end - 1)]
        }

        private func integer<Number: FixedWidthInteger>(at: Int) throws -> Number {
            guard let (digits, places) = digits(at: at), places == 0, let number = Number(exactly: digits) else {
                throw decline()
            }
            return number
        }

        /// Both are exact in a double, so that their quotient is the nearest one.
        private func double(at: Int) throws -> Double {
            guard let (digits, places) = digits(at: at) else { throw decline() }
            var power = 1.0
            for _ in 0..<places { power *= 10 }
            return Double(digits) / power
        }

        /// A number of up to fifteen digits without its point, and how many stand behind that. No negative zero.
        private func digits(at: Int) -> (digits: Int64, places: Int)? {
            let isNegative = text[at] == UInt8(ascii: "-")
            guard isNegative || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(text[at]) else { return nil }
            var end = at
            guard text.skip(&end, depth: 0), end - at <= 15 else { return nil }
            var (number, places) = (Int64(0), 0)
            var isFraction = false
            for index in (isNegative ? at + 1 : at)..<end {
                if text[index] == UInt8(ascii: ".") {
                    isFraction = true
                } else {
                    number = number * 10 + Int64(text[index] - UInt8(ascii: "0"))
                    if isFraction { places += 1 }
                }
            }
            guard !isNegative || number > 0 else { return nil }
            return (isNegative ? -number : number, places)
        }
    }

    /// A value in the text.
    private struct Reader: Decoder {
        let source: Source
        let at: Int

        var userInfo: [CodingUserInfoKey: Any] { [:] }
        /// Kept by nobody: who asks is declined.
        var codingPath: [any CodingKey] {
            _ = source.decline()
            return []
        }

        func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
            guard source.text[at] == UInt8(ascii: "{") else { throw source.decline() }
            return KeyedDecodingContainer(Members<Key>(source: source, at: at))
        }

        func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
            guard source.text[at] == UInt8(ascii: "[") else { throw source.decline() }
            return Elements(source: source, start: at)
        }

        func singleValueContainer() throws -> any SingleValueDecodingContainer { Single(source: source, at: at) }
    }
}

extension FastArgumentDecoder {
    private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let source: Source
        /// Where its brace stands.
        let at: Int

        var codingPath: [any CodingKey] { Reader(source: source, at: at).codingPath }

        var allKeys: [Key] {
            var keys: [Key] = []
            each { name, _ in
                if let key = Key(stringValue: String(decoding: name, as: UTF8.self)) { keys.append(key) }
                return true
            }
            return keys
        }

        func contains(_ key: Key) -> Bool { find(key) != nil }
        func decodeNil(forKey key: Key) throws -> Bool { source.isNull(at: try place(of: key)) }
        func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
            try source.read(type, at: try place(of: key))
        }
        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> {
            try Reader(source: source, at: try place(of: key)).container(keyedBy: type)
        }
        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            try Reader(source: source, at: try place(of: key)).unkeyedContainer()
        }
        func superDecoder() throws -> any Decoder { throw source.decline() }
        func superDecoder(forKey key: Key) throws -> any Decoder { throw source.decline() }

        private func place(of key: Key) throws -> Int {
            guard let place = find(key) else { throw source.decline() }
            return place
        }

        private func find(_ key: Key) -> Int? {
            var name = key.stringValue
            var place: Int?
            name.withUTF8 { wanted in
                each { name, at in
                    guard name.elementsEqual(wanted) else { return true }
                    place = at
                    return false
                }
                if place == nil, wanted.contains(where: { $0 >= 0x80 }) { _ = source.decline() }
            }
            return place
        }

        /// Calls with each name and the place of its value, until it is told to stop.
        private func each(_ body: (Slice<UnsafeRawBufferPointer>, Int) -> Bool) {
            let text = source.text
            var at = text.afterSpace(self.at + 1)
            while text[at] == UInt8(ascii: "\"") {
                let name = source.inside(at)
                let value = text.afterSpace(text.afterSpace(name.endIndex + 1) + 1)
                guard body(name, value) else { return }
                at = value
                guard text.skip(&at, depth: 0) else { return }
                at = text.afterSpace(at)
                if text[at] == UInt8(ascii: ",") { at = text.afterSpace(at + 1) }
            }
        }
    }

    private struct Elements: UnkeyedDecodingContainer {
        let source: Source
        private let first: Int
        /// Where the next one stands, or the bracket behind the last.
        private var at: Int
        private(set) var currentIndex = 0

        init(source: Source, start: Int) {
            self.source = source
            first = source.text.afterSpace(start + 1)
            at = first
        }

        var codingPath: [any CodingKey] { Reader(source: source, at: at).codingPath }
        var count: Int? {
            var rest = self
            rest.at = first
            rest.currentIndex = 0
            while !rest.isAtEnd { rest.step() }
            return rest.currentIndex
        }
        var isAtEnd: Bool { source.text[at] == UInt8(ascii: "]") }

        mutating func decodeNil() throws -> Bool {
            guard !isAtEnd else { throw source.decline() }
            guard source.isNull(at: at) else { return false }
            step()
            return true
        }
        mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
            guard !isAtEnd else { throw source.decline() }
            defer { step() }
            return try source.read(type, at: at)
        }
        mutating func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type
        ) throws -> KeyedDecodingContainer<Nested> {
            defer { step() }
            return try Reader(source: source, at: at).container(keyedBy: type)
        }
        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
            defer { step() }
            return try Reader(source: source, at: at).unkeyedContainer()
        }
        mutating func superDecoder() throws -> any Decoder { throw source.decline() }

        private mutating func step() {
            let text = source.text
            guard text.skip(&at, depth: 0) else { return }
            at = text.afterSpace(at)
            if text[at] == UInt8(ascii: ",") { at = text.afterSpace(at + 1) }
            currentIndex += 1
        }
    }

    private struct Single: SingleValueDecodingContainer {
        let source: Source
        let at: Int

        var codingPath: [any CodingKey] { Reader(source: source, at: at).codingPath }
        func decodeNil() -> Bool { source.isNull(at: at) }
        func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try source.read(type, at: at) }
    }
}
