package import FoundationEssentials

/// Checks web tokens (JWT). Who issues them is configured; which algorithm a token names decides nothing.
package struct WebTokenRules: Sendable {
    package enum Key: Sendable {
        case secret([UInt8])
        case `public`(VerifyingKey)

        var algorithm: String {
            switch self {
            case .secret: "HS256"
            case .public(let key): key.algorithm.rawValue
            }
        }

        func verifies(_ message: [UInt8], signature: [UInt8]) -> Bool {
            switch self {
            case .secret(let secret): HMAC.areEqual(HMAC.sha256(message, key: secret), signature)
            case .public(let key): key.verifies(message, signature: signature)
            }
        }
    }

    package enum Refusal: String, Error, Sendable {
        case malformed = "it is no token of three parts"
        case algorithm = "its algorithm is another than that of the key"
        case signature = "its signature is wrong"
        case expired = "it has expired"
        case early = "it is not valid yet"
        case noExpiry = "it does not say when it expires"
        case issuer = "another issuer made it"
        case audience = "it is for another audience"
    }

    package var keys: [Key]
    package var issuer: String?
    package var audience: String?
    package var leeway = 30.0

    package init(keys: [Key], issuer: String? = nil, audience: String? = nil) {
        self.keys = keys
        self.issuer = issuer
        self.audience = audience
    }

    /// The payload's bytes, a JSON document, once everything has been checked.
    package func payload(of token: String, at now: Date) throws(Refusal) -> [UInt8] {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, token.utf8.count <= 16_384, let head = Base64URL.decode(parts[0]),
            let payload = Base64URL.decode(parts[1]), let signature = Base64URL.decode(parts[2]),
            let header = try? JSONDecoder().decode(Header.self, from: Data(head))
        else { throw .malformed }
        let fitting = keys.filter { $0.algorithm == header.alg }
        guard !fitting.isEmpty else { throw .algorithm }
        let message = Array("\(parts[0]).\(parts[1])".utf8)
        guard fitting.contains(where: { $0.verifies(message, signature: signature) }) else { throw .signature }
        guard let claims = try? JSONDecoder().decode(Claims.self, from: Data(payload)) else { throw .malformed }
        let seconds = now.timeIntervalSince1970
        guard let expiry = claims.exp else { throw .noExpiry }
        guard expiry + leeway > seconds else { throw .expired }
        if let start = claims.nbf, start - leeway > seconds { throw .early }
        if let issuer, claims.iss != issuer { throw .issuer }
        if let audience, !(claims.aud?.names.contains(audience) ?? false) { throw .audience }
        return payload
    }

    private struct Header: Decodable { let alg: String }

    private struct Claims: Decodable {
        let exp: Double?
        let nbf: Double?
        let iss: String?
        let aud: Audience?
    }

    /// One text, or a list of them.
    private struct Audience: Decodable {
        let names: [String]

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let name = try? container.decode(String.self) {
                names = [name]
            } else {
                names = try container.decode([String].self)
            }
        }
    }
}
