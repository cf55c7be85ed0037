/// Base64 of a stream. Our own, because it must continue where the last piece ended, which Foundation's cannot.
struct Base64: Sendable {
    private var rest: [UInt8] = []
    private var column = 0
    private let width: Int?

    /// - Parameter width: Characters in a line, ended by CR LF; nil: one line without an end.
    init(width: Int? = nil) { self.width = width }

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var encoder = Base64()
        return encoder.add(bytes[...]) + encoder.end()
    }

    /// How much `count` bytes become.
    static func length(of count: Int, width: Int? = nil) -> Int {
        let characters = (count + 2) / 3 * 4
        guard let width else { return characters }
        return characters + (characters + width - 1) / width * 2
    }

    mutating func add(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var whole: ArraySlice<UInt8>
        if rest.isEmpty { whole = bytes } else { whole = (rest + bytes)[...] }
        let take = whole.count / 3 * 3
        rest = Array(whole.suffix(whole.count - take))
        whole = whole.prefix(take)
        return lines(Self.groups(whole))
    }

    mutating func end() -> [UInt8] {
        var last: [UInt8] = []
        if !rest.isEmpty {
            let padding = 3 - rest.count
            last = Self.groups((rest + [UInt8](repeating: 0, count: padding))[...])
            for index in last.count - padding..<last.count { last[index] = UInt8(ascii: "=") }
        }
        rest = []
        var out = lines(last)
        if width != nil, column > 0 {
            out += [0x0d, 0x0a]
            column = 0
        }
        return out
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    private static func groups(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        let count = bytes.count / 3
        return [UInt8](unsafeUninitializedCapacity: count * 4) { out, used in
            bytes.withUnsafeBufferPointer { bytes in
                alphabet.withUnsafeBufferPointer { alphabet in
                    for group in 0..<count {
                        let (a, b, c) = (bytes[group * 3], bytes[group * 3 + 1], bytes[group * 3 + 2])
                        out[group * 4] = alphabet[Int(a >> 2)]
                        out[group * 4 + 1] = alphabet[Int((a & 3) << 4 | b >> 4)]
                        out[group * 4 + 2] = alphabet[Int((b & 15) << 2 | c >> 6)]
                        out[group * 4 + 3] = alphabet[Int(c & 63)]
                    }
                }
            }
            used = count * 4
        }
    }

    private mutating func lines(_ characters: [UInt8]) -> [UInt8] {
        guard let width else { return characters }
        var out: [UInt8] = []
        out.reserveCapacity(characters.count + characters.count / width * 2 + 4)
        var at = 0
        while at < characters.count {
            let count = min(width - column, characters.count - at)
            out += characters[at..<at + count]
            at += count
            column += count
            if column == width {
                out += [0x0d, 0x0a]
                column = 0
            }
        }
        return out
    }
}
