import Glibc

/// A JSON value of which long strings are counted and not kept.
package indirect enum ScannedJSON: Sendable {
    case object([(name: String, value: ScannedJSON)])
    case array([ScannedJSON])
    /// The beginning of it, and how long it is.
    case string(String, length: Int)
    case literal(String)

    package subscript(name: String) -> ScannedJSON? {
        guard case .object(let members) = self else { return nil }
        return members.last { $0.name == name }?.value
    }

    package var text: String? { if case .string(let text, _) = self { text } else { nil } }
    package var length: Int { if case .string(_, let length) = self { length } else { 0 } }
    package var list: [ScannedJSON]? { if case .array(let list) = self { list } else { nil } }
    package var isObject: Bool { if case .object = self { true } else { false } }

    /// A string, or a list of strings.
    package var texts: [String]? {
        if let text { return [text] }
        guard let list else { return nil }
        let texts = list.compactMap(\.text)
        return texts.count == list.count ? texts : nil
    }
}

/// Reads JSON as it comes and keeps no more of a string than its first kilobytes: a body of 34 MB is never held.
struct JSONScan {
    struct Malformed: Error {}

    private enum State {
        case value, string, escape, unicode(Int), literal, between, over
    }

    private enum Frame {
        case object([(name: String, value: ScannedJSON)], name: String?)
        case array([ScannedJSON])
    }

    private static let most = 8192
    private var state = State.value
    private var frames: [Frame] = []
    private var bytes: [UInt8] = []
    private var length = 0
    private var code: UInt32 = 0
    private var high: UInt32?
    private(set) var result: ScannedJSON?
    /// A name, or the end of an empty list, may come where a value is waited for.
    private var mayEnd = false

    mutating func feed(_ input: [UInt8]) throws(Malformed) {
        var at = 0
        while at < input.count {
            switch state {
            case .string: at = run(input, from: at)
            case .escape:
                try escape(input[at])
                at += 1
            case .unicode(let left):
                guard let digit = Character(UnicodeScalar(input[at])).hexDigitValue else { throw Malformed() }
                code = code << 4 | UInt32(digit)
                state = left > 1 ? .unicode(left - 1) : .string
                if left == 1 { unicode() }
                at += 1
            case .literal:
                let byte = input[at]
                if byte <= 0x20 || ",]}".utf8.contains(byte) {
                    try literal()
                } else {
                    guard bytes.count < 40 else { throw Malformed() }
                    bytes.append(byte)
                    at += 1
                }
            case .value, .between, .over:
                let byte = input[at]
                at += 1
                if byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 { continue }
                if case .value = state { try value(byte) } else { try between(byte) }
            }
        }
    }

    mutating func end() throws(Malformed) -> ScannedJSON {
        if case .literal = state, frames.isEmpty { try literal() }
        guard case .over = state, let result else { throw Malformed() }
        return result
    }

    /// All up to the next quote or backslash.
    private mutating func run(_ input: [UInt8], from at: Int) -> Int {
        let (end, mark) = input.withUnsafeBytes { buffer -> (Int, UInt8?) in
            guard let start = buffer.baseAddress?.advanced(by: at) else { return (at, nil) }
            var count = buffer.count - at
            var mark: UInt8?
            if let quote = memchr(start, 0x22, count) {
                count = UnsafeRawPointer(quote) - start
                mark = 0x22
            }
            if let slash = memchr(start, 0x5c, count) {
                count = UnsafeRawPointer(slash) - start
                mark = 0x5c
            }
            return (at + count, mark)
        }
        length += end - at
        if bytes.count < Self.most { bytes += input[at..<min(end, at + Self.most - bytes.count)] }
        guard let mark else { return end }
        if mark == 0x22 { closeString() } else { state = .escape }
        return end + 1
    }

    private mutating func keep(_ more: String) {
        length += more.utf8.count
        if bytes.count < Self.most { bytes += more.utf8 }
    }

    private mutating func escape(_ byte: UInt8) throws(Malformed) {
        state = .string
        switch byte {
        case UInt8(ascii: "n"): keep("\n")
        case UInt8(ascii: "r"): keep("\r")
        case UInt8(ascii: "t"): keep("\t")
        case UInt8(ascii: "b"): keep("\u{8}")
        case UInt8(ascii: "f"): keep("\u{c}")
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): keep(String(UnicodeScalar(byte)))
        case UInt8(ascii: "u"):
            code = 0
            state = .unicode(4)
        default: throw Malformed()
        }
    }

    private mutating func unicode() {
        if (0xD800..<0xDC00).contains(code) {
            high = code
        } else if let first = high, (0xDC00..<0xE000).contains(code) {
            keep(UnicodeScalar(0x10000 + (first - 0xD800) << 10 + (code - 0xDC00)).map { String($0) } ?? "?")
            high = nil
        } else {
            keep(UnicodeScalar(code).map { String($0) } ?? "?")
        }
    }

    private mutating func value(_ byte: UInt8) throws(Malformed) {
        let mayClose = mayEnd
        mayEnd = false
        bytes = []
        length = 0
        switch byte {
        case UInt8(ascii: "\""): state = .string
        case UInt8(ascii: "{"):
            guard !isName else { throw Malformed() }
            frames.append(.object([], name: nil))
            mayEnd = true
        case UInt8(ascii: "["):
            guard !isName else { throw Malformed() }
            frames.append(.array([]))
            mayEnd = true
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
            guard mayClose else { throw Malformed() }
            try close(byte)
        default:
            guard !isName else { throw Malformed() }
            bytes = [byte]
            state = .literal
        }
        guard frames.count < 32 else { throw Malformed() }
    }

    private mutating func between(_ byte: UInt8) throws(Malformed) {
        guard let frame = frames.last else { throw Malformed() }
        switch byte {
        case UInt8(ascii: ","):
            if case .object(_, let name?) = frame, !name.isEmpty { throw Malformed() }
            state = .value
        case UInt8(ascii: ":"):
            guard case .object(_, .some) = frame else { throw Malformed() }
            state = .value
        default: try close(byte)
        }
    }

    private var isName: Bool { if case .object(_, name: nil) = frames.last { true } else { false } }

    private mutating func close(_ byte: UInt8) throws(Malformed) {
        switch (frames.popLast(), byte) {
        case (.object(let members, nil), UInt8(ascii: "}")): put(.object(members))
        case (.array(let list), UInt8(ascii: "]")): put(.array(list))
        default: throw Malformed()
        }
    }

    private mutating func closeString() {
        let text = String(decoding: bytes, as: UTF8.self)
        if isName, case .object(let members, _)? = frames.popLast() {
            frames.append(.object(members, name: text))
            state = .between
        } else {
            put(.string(text, length: length))
        }
    }

    private mutating func literal() throws(Malformed) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard ["true", "false", "null"].contains(text) || Double(text) != nil else { throw Malformed() }
        put(.literal(text))
    }

    private mutating func put(_ value: ScannedJSON) {
        switch frames.popLast() {
        case nil:
            result = value
            state = .over
            return
        case .array(let list): frames.append(.array(list + [value]))
        case .object(let members, let name): frames.append(.object(members + [(name ?? "", value)], name: nil))
        }
        state = .between
    }
}
