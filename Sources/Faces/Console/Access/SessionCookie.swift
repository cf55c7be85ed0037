import FoundationEssentials
import Signatures

/// One signing-in of somebody. The database knows it by its mark, once it is over.
struct ConsoleSession: Sendable, Equatable {
    let mark: [UInt8]
    /// In seconds since 1970.
    let until: Int
}

/// A signed cookie: who signed in, with which role, until when. Every console with the same key opens it; what is stored is only which sessions
/// people have signed out of.
struct SessionCookie: Sendable {
    static let name = "millrace_console"
    static let lasts = 12 * 3600

    let key: [UInt8]

    struct Content: Equatable {
        var name: String
        var role: ConsoleRole
        var until: Int
        /// Of the user's line, or of the token.
        var mark: String
        /// Tells this session from every other.
        var id = Content.newID()

        var session: ConsoleSession {
            ConsoleSession(
                mark: HMAC.sha256(Array(id.utf8), key: Array("millrace console session 1".utf8)), until: until)
        }

        private static func newID() -> String {
            Base64URL.encode((0..<16).map { _ in UInt8.random(in: .min ... .max) })
        }
    }

    func text(_ content: Content) -> String {
        let plain = [content.name, content.role.rawValue, "\(content.until)", content.mark, content.id]
            .joined(separator: "|")
        let encoded = Base64URL.encode(Array(plain.utf8))
        return encoded + "." + Base64URL.encode(signature(of: encoded))
    }

    /// nil: not ours, changed, or over.
    func content(of text: String, at now: Date) -> Content? {
        let halves = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard halves.count == 2, text.utf8.count <= 1024, let given = Base64URL.decode(halves[1]),
            HMAC.areEqual(given, signature(of: halves[0])), let bytes = Base64URL.decode(halves[0]),
            let plain = String(validating: bytes, as: UTF8.self)
        else { return nil }
        let parts = plain.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 5, let role = ConsoleRole(rawValue: parts[1]), let until = Int(parts[2]),
            Double(until) > now.timeIntervalSince1970
        else { return nil }
        return Content(name: parts[0], role: role, until: until, mark: parts[3], id: parts[4])
    }

    private func signature(of encoded: String) -> [UInt8] {
        HMAC.sha256(Array("millrace console session 1:\(encoded)".utf8), key: key)
    }

    /// Proves that a form came from a page of ours for this visitor.
    func formToken(of visitor: Visitor) -> String {
        Base64URL.encode(HMAC.sha256(Array("millrace console form 1:\(visitor.name)".utf8), key: key))
    }

    func isFormToken(_ text: String, of visitor: Visitor) -> Bool {
        HMAC.areEqual(Array(text.utf8), Array(formToken(of: visitor).utf8))
    }

    /// The value of our cookie in a Cookie header.
    static func value(in header: String?) -> String? { value(of: name, in: header) }

    static func value(of name: String, in header: String?) -> String? {
        for pair in (header ?? "").split(separator: ";") {
            let halves = pair.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
            if halves.count == 2, halves[0] == name { return String(halves[1]) }
        }
        return nil
    }
}
