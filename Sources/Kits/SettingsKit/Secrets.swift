/// Keeps secrets out of everything that we print.
package enum Secrets {
    package static let mask = "***"

    /// The connection parameters that may be shown; all others are masked, because libpq keeps adding some.
    private static let open: Set<String> = [
        "user", "host", "hostaddr", "port", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey", "channel_binding",
        "application_name", "connect_timeout", "target_session_attrs", "load_balance_hosts", "gssencmode", "service",
        "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "requiressl",
    ]

    /// A connection string for people: user, host and database stay; a text that libpq would refuse is masked whole.
    package static func masked(connection text: String) -> String {
        guard let connection = try? ConnectionText(text) else { return mask }
        let parts = connection.parts.map { part in
            ConnectionText.Part(
                key: part.key, value: open.contains(part.key) ? part.value : mask, isParameter: part.isParameter)
        }
        switch connection.form {
        case .url: return url(parts)
        case .pairs: return parts.map { "\($0.key)=\(quotedPair($0.value))" }.joined(separator: " ")
        }
    }

    private static func url(_ parts: [ConnectionText.Part]) -> String {
        var rest = parts[...]
        func take(_ key: String) -> String? {
            guard let first = rest.first, first.key == key, !first.isParameter else { return nil }
            return rest.removeFirst().value
        }
        var text = "postgres://"
        if let user = take("user") {
            text += user
            if take("password") != nil { text += ":\(mask)" }
            text += "@"
        }
        text += take("host") ?? ""
        if let database = take("dbname") { text += "/\(database)" }
        let parameters = rest.map { "\($0.key)=\($0.value)" }
        return parameters.isEmpty ? text : text + "?" + parameters.joined(separator: "&")
    }

    private static func quotedPair(_ value: String) -> String {
        let scalars = value.unicodeScalars
        guard value.isEmpty || scalars.contains(where: { $0.properties.isWhitespace || $0 == "'" || $0 == "\\" }) else {
            return value
        }
        var quoted = "'".unicodeScalars
        for scalar in scalars {
            if scalar == "'" || scalar == "\\" { quoted.append("\\") }
            quoted.append(scalar)
        }
        quoted.append("'")
        return String(quoted)
    }

    /// A value that may be or contain an address: the user info and the values of the query are masked, placeholders such as {token} are
    /// not. In doubt it is masked, because a password may contain slashes.
    package static func masked(addressesIn text: String) -> String {
        // Not by characters: a mark may sit on a sign that ends something.
        let scheme = text.firstRange(of: "://")?.upperBound
        var rest = text.unicodeScalars[(scheme ?? text.startIndex)...]
        var shown = String(text[..<rest.startIndex])
        if let at = rest.lastIndex(of: "@"), scheme != nil || rest[..<at].contains(":") {
            shown += mask
            rest = rest[at...]
        }
        let signs: [Unicode.Scalar] = ["?", "#", "&", ";"]
        guard scheme != nil, let end = rest.firstIndex(where: { $0 == "?" || $0 == "#" }) else {
            return shown + String(rest)
        }
        shown += String(rest[..<end])
        rest = rest[end...]
        while let sign = rest.first {
            let pair = rest.dropFirst().prefix { !signs.contains($0) }
            shown += "\(sign)\(maskedPair(pair))"
            rest = rest[pair.endIndex...]
        }
        return shown
    }

    private static func maskedPair(_ pair: Substring.UnicodeScalarView) -> String {
        let sign = pair.firstIndex(of: "=")
        let value = sign.map { pair[pair.index(after: $0)...] } ?? pair
        let isPlain = value.isEmpty || value.first == "{" && value.firstIndex(of: "}") == value.indices.last
        return isPlain ? String(pair) : String(sign.map { pair[...$0] } ?? pair[..<pair.startIndex]) + mask
    }

    /// Something a person typed, safe to repeat: short, harmless to a terminal, and without what looks like a secret.
    package static func quoted(_ text: String) -> String { "'\(masked(text))'" }

    package static func masked(_ text: String) -> String {
        let lower = text.lowercased()
        if text.contains("://") {
            // In a connection string gone wrong, anything may be the password.
            if lower.hasPrefix("postgres") { return masked(connection: text) }
            if text.contains("@") || text.contains("?") { return mask }
        }
        let hints = ["password", "passwd", "secret", "token", "apikey", "api_key", "passphrase"]
        if text.contains("="), hints.contains(where: lower.contains) { return mask }
        return DisplayWidth.cut(DisplayWidth.harmless(masked(addressesIn: text)), to: 60)
    }
}
