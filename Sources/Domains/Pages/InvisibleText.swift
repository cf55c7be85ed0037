/// A page's drawing without its invisible text: what an earlier OCR has laid there (text render mode 3). Everything else stays byte by byte.
package struct InvisibleText {
    /// The drawing without invisible text.
    package private(set) var content: [UInt8] = []
    /// How many operators are left out.
    package private(set) var removed = 0
    /// The objects that are drawn, and whether text in them is invisible unless they say otherwise.
    package private(set) var objects: [String: Bool] = [:]

    private let bytes: [UInt8]
    private var at = 0
    private var modes: [Int]
    private var mode: Int
    /// The operands before the next operator.
    private var operands: [Range<Int>] = []
    private var copied = 0

    private static let invisible = 3

    /// - Parameter isInvisible: of an object, that the drawing around it has made text invisible.
    package init(_ bytes: [UInt8], isInvisible: Bool = false) {
        self.bytes = bytes
        mode = isInvisible ? Self.invisible : 0
        modes = []
        while step() {}
        content += bytes[copied...]
    }

    /// One operand or operator. False: the end.
    private mutating func step() -> Bool {
        skipSpace()
        guard at < bytes.count else { return false }
        let start = at
        switch bytes[at] {
        case UInt8(ascii: "("):
            skipString()
        case UInt8(ascii: "<"):
            if at + 1 < bytes.count, bytes[at + 1] == UInt8(ascii: "<") {
                at += 2
            } else {
                while at < bytes.count, bytes[at] != UInt8(ascii: ">") { at += 1 }
                at = min(bytes.count, at + 1)
            }
        case UInt8(ascii: ">"), UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "{"), UInt8(ascii: "}"),
            UInt8(ascii: ")"):
            at += 1
        case UInt8(ascii: "/"):
            at += 1
            skipWord()
        default:
            skipWord()
            let isNumber =
                bytes[start] < 0x3a && bytes[start] != UInt8(ascii: "'") && bytes[start] != UInt8(ascii: "\"")
            if !isNumber {
                meet(start..<at)
                operands.removeAll(keepingCapacity: true)
                return true
            }
        }
        if at == start { at += 1 }
        if operands.count < 100_000 { operands.append(start..<at) }
        return true
    }

    private mutating func meet(_ place: Range<Int>) {
        switch String(decoding: bytes[place], as: UTF8.self) {
        case "q": if modes.count < 1000 { modes.append(mode) }
        case "Q": mode = modes.popLast() ?? mode
        case "Tr": mode = operands.last.flatMap { Int(text($0)) } ?? mode
        case "Do":
            guard let name = operands.last, bytes[name.lowerBound] == UInt8(ascii: "/") else { return }
            objects[text(name), default: true] = objects[text(name), default: true] && mode == Self.invisible
        case "Tj", "TJ": leaveOut(place, instead: "")
        // These two also go to the next line, and the second one sets the distances of words and letters.
        case "'": leaveOut(place, instead: "T*")
        case "\"":
            guard operands.count >= 3 else { return }
            leaveOut(place, instead: "\(text(operands[0])) Tw \(text(operands[1])) Tc T*")
        case "ID": skipPicture()
        default: return
        }
    }

    private mutating func leaveOut(_ place: Range<Int>, instead: String) {
        guard mode == Self.invisible else { return }
        content += bytes[copied..<(operands.first?.lowerBound ?? place.lowerBound)]
        content += Array(instead.utf8)
        copied = place.upperBound
        removed += 1
    }

    private func text(_ place: Range<Int>) -> String { String(decoding: bytes[place], as: UTF8.self) }

    private mutating func skipSpace() {
        while at < bytes.count {
            if bytes[at] == UInt8(ascii: "%") {
                while at < bytes.count, bytes[at] != 10, bytes[at] != 13 { at += 1 }
            } else if Self.isSpace(bytes[at]) {
                at += 1
            } else {
                return
            }
        }
    }

    private mutating func skipWord() {
        while at < bytes.count, !Self.isSpace(bytes[at]), !Self.isDelimiter(bytes[at]) { at += 1 }
    }

    private mutating func skipString() {
        var depth = 0
        while at < bytes.count {
            switch bytes[at] {
            case UInt8(ascii: "\\"): at += 1
            case UInt8(ascii: "("): depth += 1
            case UInt8(ascii: ")"): depth -= 1
            default: break
            }
            at = min(bytes.count, at + 1)
            if depth == 0 { return }
        }
    }

    /// The bytes of a picture that stands in the drawing itself can be anything; after its end come operators again.
    private mutating func skipPicture() {
        var end = at + 1
        while end + 2 < bytes.count {
            if bytes[end] == UInt8(ascii: "E"), bytes[end + 1] == UInt8(ascii: "I"), Self.isSpace(bytes[end - 1]),
                Self.isSpace(bytes[end + 2]),
                bytes[(end + 2)...].prefix(12).allSatisfy({ $0 < 0x7f && ($0 >= 32 || Self.isSpace($0)) })
            {
                at = end + 2
                return
            }
            end += 1
        }
        at = bytes.count
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 32 || (9...13).contains(byte) && byte != 11 || byte == 0
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool { "()<>[]{}/%".utf8.contains(byte) }
}
