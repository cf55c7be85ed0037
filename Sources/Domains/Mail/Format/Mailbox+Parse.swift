extension Mailbox {
    /// Reads `name@host`, `Name <name@host>` or `"Name, quoted" <name@host>`. Lists, comments and routes are refused. The host is returned
    /// in ASCII.
    package static func parse(_ text: String) throws(Complaint) -> Mailbox {
        guard text.utf8.count <= 1000 else { throw Complaint("the address", "is longer than 1000 bytes") }
        if let why = unprintable(text) { throw Complaint("the address", why) }
        let text = trim(text[...])
        guard text.last == ">" else { return Mailbox(address: try address(text)) }
        // Only the last bracket opens the address: an earlier one belongs to the quoted name.
        guard let open = text.lastIndex(of: "<") else {
            throw Complaint("the address", "has a closing bracket and no opening one")
        }
        let bare = text[text.index(after: open)...].dropLast()
        let name = try phrase(trim(text[..<open]))
        let address = try address(bare)
        guard let name else { return Mailbox(address: address) }
        try DisplayName.check(name, address: address)
        return Mailbox(name: name, address: address)
    }

    /// `name@host` on the wire, or why not.
    package static func address(_ text: some StringProtocol) throws(Complaint) -> String {
        func bad(_ why: String) -> Complaint { Complaint("the address", why) }
        guard !text.isEmpty else { throw bad("is empty") }
        if let why = unprintable(text) { throw bad(why) }
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        guard parts.count == 2 else { throw bad("is not of the form name@host") }
        let local = parts[0]
        guard (1...64).contains(local.utf8.count) else {
            throw bad("has no name, or one longer than 64 bytes, before the @")
        }
        guard local.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw bad("has letters other than ASCII before the @, which not every server accepts")
        }
        let atoms = local.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard atoms.allSatisfy({ !$0.isEmpty && $0.allSatisfy(isAtomByte) }) else {
            throw bad("has a character or a dot before the @ where none is allowed")
        }
        let host: String
        do {
            host = try HostName.ascii(parts[1])
        } catch {
            throw bad("has a domain that \(error.why)")
        }
        let whole = "\(local)@\(host)"
        guard whole.utf8.count <= 254 else { throw bad("is longer than 254 bytes") }
        return whole
    }

    /// Checks the address again, because it may not come from `parse`.
    package func check() throws(Complaint) {
        guard try Self.address(address) == address else {
            throw Complaint("the address", "is not written as on the wire: its domain must be lower case and in ASCII")
        }
        if let name { try DisplayName.check(name, address: address) }
    }

    var host: Substring { address.split(separator: "@").last ?? "" }

    private static func phrase(_ text: Substring) throws(Complaint) -> String? {
        guard !text.isEmpty else { return nil }
        guard text.first == "\"" else {
            guard !text.contains(where: { "\"<>()[],;:\\".contains($0) }) else {
                throw Complaint("the name", "holds a character that must be quoted: put the name in double quotes")
            }
            return String(text)
        }
        guard text.count >= 2, text.last == "\"" else { throw Complaint("the name", "has a quote that is not closed") }
        var name = ""
        var isEscaped = false
        for character in text.dropFirst().dropLast() {
            if isEscaped || (character != "\\" && character != "\"") {
                name.append(character)
                isEscaped = false
            } else if character == "\\" {
                isEscaped = true
            } else {
                throw Complaint("the name", "has a quote within quotes without a backslash before it")
            }
        }
        guard !isEscaped else { throw Complaint("the name", "has a quote that is not closed") }
        return name.isEmpty ? nil : name
    }

    private static func unprintable(_ text: some StringProtocol) -> String? {
        text.utf8.contains { $0 < 0x20 || $0 == 0x7f } ? "holds a line break, a NUL or another control character" : nil
    }
}

/// Without spaces at both ends.
func trim(_ text: Substring) -> Substring {
    var text = text
    while text.first == " " { text.removeFirst() }
    while text.last == " " { text.removeLast() }
    return text
}
