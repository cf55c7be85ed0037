/// The rules for a name beside an address. Readers look at the name, so it must not look like an address, a link or another sender.
package enum DisplayName {
    package static func check(_ name: String, address: String) throws(Complaint) {
        func bad(_ why: String) -> Complaint { Complaint("the name", why) }
        guard !name.isEmpty else { throw bad("is empty; leave it out") }
        guard !name.hasPrefix(" "), !name.hasSuffix(" ") else { throw bad("begins or ends with a space") }
        guard name.utf8.count <= 200 else { throw bad("is longer than 200 bytes") }
        for scalar in name.unicodeScalars {
            if scalar.properties.generalCategory == .control {
                throw bad("holds a line break, a NUL or another control character")
            }
            if isInvisible(scalar) { throw bad("holds a character that reverses or hides text") }
            if isAt(scalar) { throw bad("holds an @, and would pass for an address") }
        }
        guard !name.contains("<"), !name.contains(">") else { throw bad("holds an angle bracket") }
        let folded = name.lowercased()
        if folded.contains("://") || folded.contains("www.") { throw bad("holds a web address") }
        for marker in [" via ", " on behalf of "] where folded.contains(marker) {
            throw bad("says \"\(trim(marker[...]))\", as mail programs say it of a sender in disguise")
        }
        let host = address.lowercased().split(separator: "@").last ?? ""
        for word in folded.split(whereSeparator: { " ,;:()[]\"'/|".contains($0) }) where looksLikeDomain(word) {
            guard host == word || host.hasSuffix(".\(word)") else {
                throw bad("holds a domain that is not the address's own")
            }
        }
    }

    /// Every dot that a domain may be written with, followed by letters that many domains end with.
    private static func looksLikeDomain(_ word: Substring) -> Bool {
        let labels = word.split(omittingEmptySubsequences: false) { ".\u{3002}\u{FF0E}\u{FF61}\u{2024}".contains($0) }
        guard labels.count >= 2, let last = labels.last, labels.allSatisfy({ !$0.isEmpty }) else { return false }
        return endings.contains(last) || last.hasPrefix("xn--")
    }

    private static let endings: Set<Substring> = [
        "com", "net", "org", "info", "biz", "edu", "gov", "io", "co", "app", "dev", "me", "tv", "ai", "de", "uk", "fr",
        "it", "es", "nl", "eu", "us", "ca", "ch", "at", "be", "se", "no", "dk", "fi", "pl", "cz", "ru", "ua", "br",
        "mx", "ar", "jp", "cn", "kr", "in", "au", "nz", "za", "tr", "gr", "pt", "ie", "xyz", "online", "site", "shop",
        "store", "top", "club", "link", "click", "bank", "cloud", "email", "support", "live",
    ]

    /// Direction marks, overrides and isolates, and spaces without width. The joiners stay: scripts and emoji need them.
    static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x061C, 0x200B, 0x200E, 0x200F, 0x202A...0x202E, 0x2028, 0x2029, 0x2060...0x2064, 0x2066...0x206F, 0xFEFF,
            0xFFF9...0xFFFB, 0x00AD, 0x034F, 0x115F, 0x1160, 0x3164, 0xFFA0, 0xE0000...0xE0FFF:
            true
        default: false
        }
    }

    private static func isAt(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x40, 0xFF20, 0xFE6B: true
        default: false
        }
    }
}
