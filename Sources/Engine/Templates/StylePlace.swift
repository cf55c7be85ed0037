/// Where in a style we are. A value may only stand directly after a property: not in brackets, such as those of url(), not in quotes, and
/// not in a comment.
struct StylePlace: Equatable {
    private enum State: Equatable {
        case plain
        case quoted(UInt8)
        case comment
        /// After a character that may stand for any other: nothing is certain any more.
        case lost
    }

    private var state = State.plain
    private var depth = 0
    private var last: UInt8 = 0

    var takesValue: Bool { state == .plain && depth == 0 }

    mutating func take(_ byte: UInt8) {
        defer { last = byte }
        switch state {
        case .lost: break
        case .comment: if last == 0x2A, byte == 0x2F { state = .plain }
        case .quoted(let quote):
            if byte == quote { state = .plain } else if Self.isReference(byte) { state = .lost }
        case .plain:
            switch byte {
            case 0x22, 0x27: state = .quoted(byte)
            case 0x28: depth += 1
            case 0x29: depth = max(depth - 1, 0)
            case 0x2A where last == 0x2F: state = .comment
            case _ where Self.isReference(byte): state = .lost
            default: break
            }
        }
    }

    private static func isReference(_ byte: UInt8) -> Bool { byte == 0x5C || byte == 0x26 }
}
