/// A connection string as libpq reads it, parsed only as far as needed to leave out its secrets when we print it.
package struct ConnectionText: Sendable, Equatable {
    package enum Form: Sendable {
        case url
        case pairs
    }

    package struct Part: Sendable, Equatable {
        package let key: String
        package let value: String
        /// It is in the part after the ? of a URL.
        package var isParameter = false
    }

    package let form: Form
    package let parts: [Part]

    package static let expectation = "a postgres:// URL or key=value pairs, as libpq reads them"

    /// Why libpq would refuse the text or read it otherwise than its author meant; never repeats any of it.
    package static func complaint(_ text: String) -> String? {
        do throws(ValueRefusal) {
            _ = try ConnectionText(text)
            return nil
        } catch {
            return error.complaint
        }
    }

    // Read by scalars, as libpq reads bytes: in a `Character` an accent after a colon would make it another character.
    private typealias Scalars = Substring.UnicodeScalarView

    package init(_ text: String) throws(ValueRefusal) {
        let scalars = text[...].unicodeScalars
        if let scheme = ["postgres://", "postgresql://"].first(where: { scalars.starts(with: $0.unicodeScalars) }) {
            form = .url
            parts = try Self.url(scalars.dropFirst(scheme.unicodeScalars.count))
        } else if Self.hasScheme(scalars) || !scalars.contains("=") {
            throw ValueRefusal(complaint: "must be \(Self.expectation)")
        } else {
            form = .pairs
            parts = try Self.pairs(scalars)
        }
    }

    private static func hasScheme(_ text: Scalars) -> Bool {
        text.indices.contains { text[$0...].starts(with: "://".unicodeScalars) }
    }

    package func value(_ key: String) -> String? { parts.last { $0.key == key }?.value }

    // MARK: libpq's URL grammar

    private static func url(_ text: Scalars) throws(ValueRefusal) -> [Part] {
        var rest = text
        var parts: [Part] = []
        // libpq looks for credentials up to the first @ or /, whatever is in between.
        if let end = rest.firstIndex(where: { $0 == "@" || $0 == "/" }), rest[end] == "@" {
            let credentials = rest[..<end].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            parts.append(Part(key: "user", value: String(credentials[0])))
            if credentials.count > 1 { parts.append(Part(key: "password", value: String(credentials[1]))) }
            rest = rest[rest.index(after: end)...]
        }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        rest = rest[authority.endIndex...]
        try check(authority)
        if !authority.isEmpty { parts.append(Part(key: "host", value: String(authority))) }
        if rest.first == "/" {
            let database = rest.dropFirst().prefix { $0 != "?" }
            rest = rest[database.endIndex...]
            guard !database.contains(where: { $0 == "@" || $0 == "/" }) else { throw ambiguous }
            if !database.isEmpty { parts.append(Part(key: "dbname", value: String(database))) }
        }
        for parameter in rest.dropFirst().split(separator: "&", omittingEmptySubsequences: false) where !rest.isEmpty {
            let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, !pair[0].isEmpty, !pair[1].contains("=") else {
                if rest.elementsEqual("?".unicodeScalars) { break }
                throw ValueRefusal(complaint: "has a parameter behind the ? that is not key=value")
            }
            guard isName(pair[0]), !pair[1].contains("@") else { throw ambiguous }
            parts.append(Part(key: String(pair[0]), value: String(pair[1]), isParameter: true))
        }
        for part in parts {
            guard isEncoded(part.value) else {
                throw ValueRefusal(
                    complaint: "has a % that is not followed by two hexadecimal digits; write % itself as %25")
            }
        }
        return parts
    }

    private static let ambiguous = ValueRefusal(
        complaint:
            "cannot be read as a URL; write / @ : ? and % in a user's name or password as %2F %40 %3A %3F and %25")

    /// There may be several hosts, each with its own port.
    private static func check(_ authority: Scalars) throws(ValueRefusal) {
        for host in authority.split(separator: ",", omittingEmptySubsequences: false) {
            // Characters that no host name contains are the rest of an unencoded password.
            guard host.allSatisfy({ isPlain($0) || ".-_%:[]".unicodeScalars.contains($0) }) else { throw ambiguous }
            let behind = host.first == "[" ? host.drop { $0 != "]" }.dropFirst() : host.drop { $0 != ":" }
            if host.first == "[", !host.contains("]") { throw ValueRefusal(complaint: "has a [ without its ]") }
            guard !behind.isEmpty else { continue }
            guard behind.first == ":", behind.count == 1 || isPort(Substring(behind.dropFirst())) else {
                throw ValueRefusal(
                    complaint: "has a port that is not a number from 1 to 65535, or \(ambiguous.complaint)")
            }
        }
    }

    package static func isPort(_ text: Substring) -> Bool {
        text.allSatisfy(\.isASCII) && Int(text).map { (1...65_535).contains($0) } ?? false
    }

    private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isAlphabetic || scalar.properties.numericType != nil
    }

    private static func isName(_ text: Scalars) -> Bool {
        text.allSatisfy { $0.isASCII && (isPlain($0) || $0 == "_") }
    }

    private static func isEncoded(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: "%") {
            let digits = bytes.dropFirst(index + 1).prefix(2)
            guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else {
                return false
            }
        }
        return true
    }
}

extension ConnectionText {
    /// libpq's `key = 'value'` pairs, with backslashes in and outside of quotes.
    private static func pairs(_ text: Scalars) throws(ValueRefusal) -> [Part] {
        var parts: [Part] = []
        var rest = text
        while true {
            rest = rest.drop(while: isSpace)
            if rest.isEmpty { return parts }
            let key = rest.prefix { $0 != "=" && !isSpace($0) }
            rest = rest[key.endIndex...].drop(while: isSpace)
            guard rest.first == "=", isName(key), !key.isEmpty else {
                throw ValueRefusal(
                    complaint: "has a word that is not key=value; a value with spaces goes in 'single quotes'")
            }
            rest = rest.dropFirst().drop(while: isSpace)
            parts.append(Part(key: String(key), value: try value(&rest)))
        }
    }

    /// What C's isspace counts as a space; a no-break space belongs to a value.
    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
        scalar == " " || (9...13).contains(scalar.value)
    }

    private static func value(_ rest: inout Scalars) throws(ValueRefusal) -> String {
        let isQuoted = rest.first == "'"
        if isQuoted { rest = rest.dropFirst() }
        var value = String.UnicodeScalarView()
        while let next = rest.first {
            rest = rest.dropFirst()
            switch next {
            case "\\":
                guard let escaped = rest.first else { return String(value) }
                value.append(escaped)
                rest = rest.dropFirst()
            case "'" where isQuoted: return String(value)
            case _ where !isQuoted && isSpace(next): return String(value)
            default: value.append(next)
            }
        }
        guard !isQuoted else { throw ValueRefusal(complaint: "has a quote that is not closed") }
        return String(value)
    }
}
