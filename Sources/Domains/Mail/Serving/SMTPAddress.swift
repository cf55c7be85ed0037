package import Transfers

/// The address of a mail server: `smtp://user:password@host:587?tls=required`. `smtps://` uses TLS from the first byte. `smtp://` begins
/// with STARTTLS, or sends nothing, unless `tls=opportunistic` or `tls=none` is given.
package struct SMTPAddress: Sendable {
    package var host: String
    package var port: Int
    package var security: MailTransport.Security
    package var user: String?
    package var password: String?

    package static let expectation =
        "a URL such as smtp://user:password@host:587 or smtps://host, with ?tls=none for a server without TLS"

    package init?(_ text: String) {
        guard let (scheme, rest) = Self.halves(text, at: "://"), ["smtp", "smtps"].contains(scheme) else { return nil }
        let (place, query) = Self.halves(rest, at: "?") ?? (rest, "")
        var (account, server): (String?, String) = (nil, place)
        if let at = place.lastIndex(of: "@") {
            account = String(place[..<at])
            server = String(place[place.index(after: at)...])
        }
        if server.hasSuffix("/") { server.removeLast() }
        switch (scheme, query) {
        case ("smtps", ""): security = .implicit
        case ("smtp", ""), ("smtp", "tls=required"): security = .required
        case ("smtp", "tls=opportunistic"): security = .opportunistic
        case ("smtp", "tls=none"): security = .none
        default: return nil
        }
        port = scheme == "smtps" ? 465 : 587
        host = server
        // The last colon outside of an IPv6 address's brackets.
        if let colon = server.lastIndex(of: ":"), server.last != "]" {
            guard let number = Int(server[server.index(after: colon)...]), (1...65_535).contains(number) else {
                return nil
            }
            port = number
            host = String(server[..<colon])
        }
        guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && !"/@?#\\".utf8.contains($0) }) else {
            return nil
        }
        guard let account else { return }
        let (name, secret) = Self.halves(account, at: ":") ?? (account, "")
        guard let user = Self.decoded(name), let password = Self.decoded(secret), !user.isEmpty else { return nil }
        self.user = user
        self.password = password
    }

    package var configuration: MailTransport.Configuration {
        var configuration = MailTransport.Configuration(host: host, port: port, security: security)
        configuration.user = user
        configuration.password = password
        return configuration
    }

    private static func halves(_ text: String, at sign: String) -> (String, String)? {
        guard let range = text.firstRange(of: sign) else { return nil }
        return (String(text[..<range.lowerBound]), String(text[range.upperBound...]))
    }

    /// nil when a per cent sign is followed by something else than two digits, or a control character comes out.
    private static func decoded(_ text: String) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(String(Substring(rest.prefix(2))), radix: 16) else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return bytes.contains { $0 < 0x20 || $0 == 0x7f } ? nil : String(validating: bytes, as: UTF8.self)
    }
}
