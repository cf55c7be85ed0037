import HostNames

/// The domain of an address.
package enum HostName {
    /// In ASCII and lower case, by the rules of internationalised names.
    package static func ascii(_ text: some StringProtocol) throws(Complaint) -> String {
        let text = String(text)
        guard !text.isEmpty else { throw bad("is missing") }
        guard text.utf8.count <= 1000, !text.utf8.contains(0) else { throw bad("is not a domain") }
        guard !text.hasPrefix("[") else { throw bad("is an address literal; give a name") }
        // libidn2 drops characters that it does not accept: x_y would become xy, somebody else's domain.
        guard text.utf8.allSatisfy({ $0 >= 0x80 || isLetterOrDigit($0) || "-.".utf8.contains($0) }) else {
            throw bad("has characters that no domain has")
        }
        guard let name = InternationalName.ascii(text) else {
            throw bad("is not a domain that can be written in ASCII")
        }
        return try checked(name.lowercased())
    }

    private static func checked(_ name: String) throws(Complaint) -> String {
        guard name.utf8.count <= 253 else { throw bad("is longer than 253 bytes") }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        for label in labels {
            guard (1...63).contains(label.utf8.count) else { throw bad("has an empty or an overlong part") }
            guard label.utf8.allSatisfy({ isLetterOrDigit($0) || $0 == UInt8(ascii: "-") }) else {
                throw bad("has characters that no domain has")
            }
            guard !label.hasPrefix("-"), !label.hasSuffix("-") else {
                throw bad("has a part with a hyphen at its edge")
            }
        }
        guard let last = labels.last, !last.utf8.allSatisfy({ isDigit($0) }) else {
            throw bad("ends in a number; a domain does not")
        }
        return name
    }

    private static func bad(_ why: String) -> Complaint { Complaint("the domain", why) }
}

func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }

func isLetterOrDigit(_ byte: UInt8) -> Bool { isDigit(byte) || isLetter(byte) }

/// The bytes of an atom (RFC 5322, 3.2.3).
func isAtomByte(_ byte: UInt8) -> Bool {
    isLetterOrDigit(byte) || "!#$%&'*+-/=?^_`{|}~".utf8.contains(byte)
}
