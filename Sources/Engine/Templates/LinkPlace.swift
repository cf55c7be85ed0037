/// How much of an address is written out before a value. No value may decide where an address leads: either its scheme and host are certain
/// before the first value, or a value is its whole beginning.
enum LinkPlace: Equatable {
    /// Nothing yet. → begun, certain, whole
    case start
    /// The text so far; its scheme and its host may still change. → certain, afterSlash
    case begun([UInt8])
    /// A value that is an address or empty, and perhaps more of its host. → afterSlash, certain
    case whole
    /// The part before the slash may be empty, and a second slash would then begin a host. → either, certain
    case afterSlash
    /// A section may have written its beginning, or may have been left out. → certain
    case either
    case certain

    mutating func take(_ byte: UInt8) {
        // Browsers skip these characters everywhere.
        if byte <= 0x20 { return }
        switch self {
        case .start: begin([byte])
        case .begun(let text): if text.count < 512 { begin(text + [byte]) }
        case .whole: self = Self.isSlash(byte) ? .afterSlash : Self.endsHost(byte) ? .certain : .whole
        case .afterSlash: self = Self.isSlash(byte) ? .either : .certain
        case .either: if byte == 0x3F || byte == 0x23 { self = .certain }
        case .certain: break
        }
    }

    /// The escape of a value here; nil where it would decide where the address leads.
    mutating func takeValue() -> Escape? {
        switch self {
        case .start:
            self = .whole
            return .address
        case .begun([0x2F]):
            self = .afterSlash
            return .component
        case .afterSlash, .certain: return .component
        case .begun, .whole, .either: return nil
        }
    }

    /// After a section that may be left out.
    func joined(with other: LinkPlace) -> LinkPlace {
        if self == other { return self }
        func isWhole(_ place: LinkPlace) -> Bool { [.start, .whole, .certain].contains(place) }
        return isWhole(self) && isWhole(other) ? .whole : .either
    }

    private mutating func begin(_ text: [UInt8]) {
        self = Self.isCertain(text) ? .certain : .begun(text)
    }

    /// No host follows these schemes.
    private static let opaque = ["mailto", "tel", "sms", "cid", "mid"].map { Array($0.utf8) }

    private static func isCertain(_ text: [UInt8]) -> Bool {
        // A character reference may stand for any character, even a colon or a slash.
        if text.contains(0x26) { return false }
        let head = text.prefix { !endsHost($0) }
        guard let colon = head.firstIndex(of: 0x3A) else {
            guard head.isEmpty else { return head.count < text.count }
            guard let first = text.first, isSlash(first) else { return true }
            guard text.count > 1 else { return false }
            return isSlash(text[1]) ? hasHost(text[...]) : true
        }
        if Address.isForbidden(text) { return false }
        let scheme = head[..<colon].map { $0 &- 65 < 26 ? $0 | 0x20 : $0 }
        return opaque.contains(scheme) || hasHost(text[(colon + 1)...])
    }

    /// Browsers read any number of slashes of either kind as two.
    private static func hasHost(_ text: ArraySlice<UInt8>) -> Bool {
        let rest = text.drop(while: isSlash)
        let host = rest.prefix { !endsHost($0) }
        return !host.isEmpty && host.count < rest.count
    }

    private static func isSlash(_ byte: UInt8) -> Bool { byte == 0x2F || byte == 0x5C }
    private static func endsHost(_ byte: UInt8) -> Bool { isSlash(byte) || byte == 0x3F || byte == 0x23 }
}
