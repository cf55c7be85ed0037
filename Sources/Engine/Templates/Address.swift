/// Which addresses a link may have.
enum Address {
    private static let schemes = ["https:", "http:", "mailto:", "tel:"].map { Array($0.utf8) }

    /// Absolute, with a scheme that runs nothing, and without spaces, control characters or quotes.
    static func isSafe(_ bytes: some Collection<UInt8>) -> Bool {
        guard
            bytes.allSatisfy({
                $0 > 0x20 && $0 != 0x7F && $0 != 0x22 && $0 != 0x3C && $0 != 0x3E && $0 != 0x5C && $0 != 0x60
            })
        else { return false }
        guard
            let scheme = schemes.first(where: { scheme in
                bytes.count > scheme.count && zip(bytes, scheme).allSatisfy { ($0 | 0x20) == ($1 | 0x20) }
            })
        else { return false }
        let rest = bytes.dropFirst(scheme.count)
        guard scheme.starts(with: "http".utf8) else { return true }
        // Browsers read http:/x and http:x as http://x, other programs do not.
        return rest.count > 2 && rest.starts(with: "//".utf8) && rest.dropFirst(2).first != 0x2F
    }

    /// A forbidden scheme that a template writes out.
    static func isForbidden(_ literal: some Collection<UInt8>) -> Bool {
        // Browsers skip spaces and control characters before a scheme, and line breaks and tabs within it.
        let seen = literal.filter { $0 > 0x20 }.prefix(16).map { $0 >= 65 && $0 <= 90 ? $0 | 0x20 : $0 }
        return ["javascript:", "vbscript:", "data:"].contains { seen.starts(with: $0.utf8) }
    }
}
