import Glibc

/// The allowed form of a Host header: a name or an address, and perhaps a port; nothing before or after it.
package struct HostHeader: Equatable {
    let host: String
    let port: UInt16?

    package init?(_ text: String) {
        var host = text[...]
        var port: UInt16?
        // The colons of an address in brackets belong to the address.
        if let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
            let digits = text[text.index(after: colon)...]
            guard digits.utf8.allSatisfy({ $0 &- 48 < 10 }), let number = UInt16(digits) else { return nil }
            port = number
            host = text[..<colon]
        }
        guard host.hasPrefix("[") ? Self.isSix(host) : Self.isName(host) else { return nil }
        self.host = String(host)
        self.port = port
    }

    /// The whole name is compared: a longer name with the same beginning is another host.
    package var isThisMachine: Bool {
        host == "localhost" || host == "[::1]" || host.hasPrefix("127.") && Self.isAddress(host, AF_INET)
    }

    private static func isSix(_ host: Substring) -> Bool {
        host.hasSuffix("]") && isAddress(String(host.dropFirst().dropLast()), AF_INET6)
    }

    private static func isAddress(_ text: String, _ family: Int32) -> Bool {
        var space = in6_addr()
        return inet_pton(family, text, &space) == 1
    }

    private static func isName(_ host: Substring) -> Bool {
        !host.isEmpty
            && host.utf8.allSatisfy { byte in
                (byte | 0x20) &- 97 < 26 || byte &- 48 < 10 || byte == 0x2D || byte == 0x2E || byte == 0x5F
            }
    }
}
