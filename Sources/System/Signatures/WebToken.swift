package import FoundationEssentials
package import JSON

/// What a checked token says.
package struct WebToken: Sendable {
    /// The JSON document as it was signed.
    package let payload: [UInt8]
    /// The same, read: an object in which no key stands twice.
    package let claims: JSONValue
    package let expires: Date
}

extension WebToken {
    /// The key and the issuer that a token names, without any check: enough to decide whose keys to read, and for nothing else.
    package static func unchecked(_ token: String) -> (key: String?, issuer: String?) {
        let parts = token.split(separator: ".", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, token.utf8.count <= WebTokenRules.mostBytes else { return (nil, nil) }
        func text(_ part: Substring, _ name: String) -> String? {
            Base64URL.decode(part).flatMap { try? JSONValue.read($0)[name]?.text }
        }
        return (text(parts[0], "kid"), text(parts[1], "iss"))
    }
}

/// Checks web tokens (JWT, RFC 7519 and RFC 8725). Who issues them is configured; which algorithm a token names decides nothing.
package struct WebTokenRules: Sendable {
    package struct Key: Sendable {
        enum Form: Sendable {
            case secret([UInt8])
            case `public`(VerifyingKey)
        }

        let form: Form
        /// The `kid` of tokens that it signs; nil: it may be meant by any.
        package let id: String?
        /// It signs tokens of these issuers alone; empty: of all.
        package let issuers: [String]

        /// HS256.
        package static func secret(_ bytes: [UInt8]) -> Key { Key(form: .secret(bytes), id: nil, issuers: []) }

        package static func `public`(_ key: VerifyingKey, id: String? = nil, issuers: [String] = []) -> Key {
            Key(form: .public(key), id: id, issuers: issuers)
        }

        func takes(_ algorithm: String) -> Bool {
            switch form {
            case .secret: algorithm == WebTokenRules.shared
            case .public(let key): key.algorithm.names.contains(algorithm)
            }
        }

        func verifies(_ message: [UInt8], signature: [UInt8]) -> Bool {
            switch form {
            case .secret(let secret): HMAC.areEqual(HMAC.sha256(message, key: secret), signature)
            case .public(let key): key.verifies(message, signature: signature)
            }
        }
    }

    package enum Refusal: String, Error, Sendable {
        case malformed = "it is not a well-formed web token"
        case tooLarge = "it is too large"
        case repeatedKey = "a key appears twice in its header or in its claims"
        case critical = "its header has an extension that is not understood"
        case type = "it is a token for another purpose"
        case algorithm = "its algorithm is not that of the key"
        case unknownKey = "no key here has the id that it names"
        case signature = "its signature is wrong"
        case expired = "it has expired"
        case early = "it is not valid yet"
        case issuedAhead = "it was issued in the future"
        case noExpiry = "it does not say when it expires"
        case issuer = "another issuer made it"
        case audience = "it is for another audience"
    }

    package var keys: [Key]
    /// Who may have issued a token; empty: anybody who has a key.
    package var issuers: [String]
    /// For one of these it must be; empty: its audience does not matter.
    package var audiences: [String]
    /// The values of the header's `typ`, in lower case, beside none at all; nil: any.
    package var types: Set<String>?
    /// How far apart the clocks may be, in seconds.
    package var leeway = 30.0

    package static let mostBytes = 16_384
    /// Issuers' clocks that are wrong by more than this are a fault that somebody should see.
    private static let farAhead = 300.0
    private static let deepest = 16
    private static let shared = "HS256"
    private static let algorithms: Set<String> = [shared, "RS256", "ES256", "EdDSA", "Ed25519"]

    package init(keys: [Key], issuers: [String] = [], audiences: [String] = []) {
        self.keys = keys
        self.issuers = issuers
        self.audiences = audiences
    }

    package init(keys: [Key], issuer: String?, audience: String?) {
        self.init(keys: keys, issuers: issuer.map { [$0] } ?? [], audiences: audience.map { [$0] } ?? [])
    }

    /// The payload's bytes, a JSON document, once everything has been checked.
    package func payload(of token: String, at now: Date) throws(Refusal) -> [UInt8] {
        try check(token, at: now).payload
    }

    package func check(_ token: String, at now: Date) throws(Refusal) -> WebToken {
        let parts = token.split(separator: ".", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw .malformed }
        guard token.utf8.count <= Self.mostBytes else { throw .tooLarge }
        guard let head = Base64URL.decode(parts[0]), let payload = Base64URL.decode(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { throw .malformed }
        let header = try Self.object(head)
        let message = Array(token.utf8.prefix(parts[0].utf8.count + 1 + parts[1].utf8.count))
        let key = try key(that: header, verifies: message, signature)
        let claims = try Self.object(payload)
        let expires = try times(of: claims, at: now)
        try origin(of: claims, signedBy: key)
        return WebToken(payload: payload, claims: claims, expires: expires)
    }

    private static func object(_ bytes: [UInt8]) throws(Refusal) -> JSONValue {
        var reader = JSONReader(bytes, rules: JSONReader.Rules(deepest: deepest, allowsRepeatedKeys: false))
        do {
            let value = try reader.document()
            guard case .object = value else { throw Refusal.malformed }
            return value
        } catch let problem as JSONProblem {
            throw problem.complaint == JSONReader.repeatedKey ? .repeatedKey : .malformed
        } catch {
            throw .malformed
        }
    }

    /// By the id that the token names, if a key has it; keys without an id may be meant by any token.
    private func key(that header: JSONValue, verifies message: [UInt8], _ signature: [UInt8]) throws(Refusal) -> Key {
        guard let algorithm = header["alg"]?.text else { throw .malformed }
        // Extensions must be understood (RFC 7515, 4.1.11), and we understand none; b64 changes what is signed (RFC 7797).
        guard header["crit"] == nil, header["b64"] == nil else { throw .critical }
        if let types, let type = header["typ"] {
            guard let type = type.text?.lowercased(), types.contains(type) else { throw .type }
        }
        guard Self.algorithms.contains(algorithm) else { throw .algorithm }
        let fitting = keys.filter { $0.takes(algorithm) }
        guard let name = header["kid"] else { return try Self.first(fitting, message, signature) }
        guard let id = name.text else { throw .malformed }
        let named = fitting.filter { $0.id == id }
        do throws(Refusal) {
            return try Self.first(named.isEmpty ? fitting.filter { $0.id == nil } : named, message, signature)
        } catch {
            // Nobody publishes secrets, so no other key set would have it.
            let mayBePublished = algorithm != Self.shared && keys.contains { $0.id != nil }
            throw mayBePublished && !keys.contains { $0.id == id } ? .unknownKey : error
        }
    }

    private static func first(_ keys: [Key], _ message: [UInt8], _ signature: [UInt8]) throws(Refusal) -> Key {
        guard !keys.isEmpty else { throw .algorithm }
        guard let key = keys.first(where: { $0.verifies(message, signature: signature) }) else { throw .signature }
        return key
    }

    private func times(of claims: JSONValue, at now: Date) throws(Refusal) -> Date {
        let seconds = now.timeIntervalSince1970
        guard let expiry = try Self.time("exp", in: claims) else { throw .noExpiry }
        guard expiry + leeway > seconds else { throw .expired }
        if let start = try Self.time("nbf", in: claims), start - leeway > seconds { throw .early }
        if let issued = try Self.time("iat", in: claims), issued - Self.farAhead > seconds { throw .issuedAhead }
        return Date(timeIntervalSince1970: expiry)
    }

    private static func time(_ name: String, in claims: JSONValue) throws(Refusal) -> Double? {
        guard let value = claims[name] else { return nil }
        guard case .number(let digits) = value, let seconds = Double(digits), seconds.magnitude < 1e15 else {
            throw .malformed
        }
        return seconds
    }

    private func origin(of claims: JSONValue, signedBy key: Key) throws(Refusal) {
        let issuer = claims["iss"]?.text
        guard issuers.isEmpty || issuer.map(issuers.contains) == true,
            key.issuers.isEmpty || issuer.map(key.issuers.contains) == true
        else { throw .issuer }
        guard !audiences.isEmpty else { return }
        let named: [String]
        switch claims["aud"] {
        case .string(let name): named = [name]
        case .array(let names):
            named = names.compactMap(\.text)
            guard named.count == names.count else { throw .malformed }
        default: throw .audience
        }
        guard named.contains(where: audiences.contains) else { throw .audience }
    }
}
