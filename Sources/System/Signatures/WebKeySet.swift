package import JSON

/// The public keys that an issuer of tokens publishes (JWKS, RFC 7517). A key that cannot be used is left out, and the reason is kept.
package struct WebKeySet: Sendable {
    package struct Malformed: Error, Sendable, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    package let keys: [WebTokenRules.Key]
    /// A sentence for each key that is not used.
    package let unused: [String]

    package static let mostBytes = 262_144
    package static let mostKeys = 64

    /// - Parameter issuers: the keys sign tokens of these alone; empty: of all.
    package init(_ document: [UInt8], issuers: [String] = []) throws(Malformed) {
        guard document.count <= Self.mostBytes else {
            throw Malformed(description: "it takes more than \(Self.mostBytes) bytes")
        }
        let found: JSONValue
        do {
            var reader = JSONReader(document, rules: JSONReader.Rules(deepest: 16, allowsRepeatedKeys: false))
            found = try reader.document()
        } catch {
            throw Malformed(description: "it is not JSON: \(error.sentence)")
        }
        guard let items = found["keys"]?.items else { throw Malformed(description: "it has no list of keys") }
        guard items.count <= Self.mostKeys else {
            throw Malformed(description: "it has more than \(Self.mostKeys) keys")
        }
        var keys: [WebTokenRules.Key] = []
        var unused: [String] = []
        for (index, item) in items.enumerated() {
            do throws(VerifyingKey.Unusable) {
                let id = try Self.id(of: item)
                keys.append(.public(try VerifyingKey(webKey: item), id: id, issuers: issuers))
            } catch {
                unused.append("key \(index + 1): \(error.description)")
            }
        }
        self.keys = keys
        self.unused = unused
    }

    private static func id(of key: JSONValue) throws(VerifyingKey.Unusable) -> String? {
        guard let value = key["kid"] else { return nil }
        guard let id = value.text, (1...256).contains(id.utf8.count) else {
            throw VerifyingKey.Unusable(description: "its kid is not a text of 1 to 256 bytes")
        }
        return id
    }
}

extension VerifyingKey {
    /// - Parameter key: one key of a key set, a JWK.
    package convenience init(webKey key: JSONValue) throws(Unusable) {
        guard case .object = key else { throw Unusable(description: "it is not an object") }
        if let use = key["use"], use.text != "sig" {
            throw Unusable(description: "its use is not sig: it does not sign")
        }
        if let deeds = key["key_ops"], deeds.items?.contains("verify") != true {
            throw Unusable(description: "its key_ops do not have verify")
        }
        guard key["d"] == nil else { throw Unusable(description: "it is a private key, and its owner must replace it") }
        let der: [UInt8]
        switch key["kty"]?.text {
        case "RSA":
            let parts = DER.number(try Self.number("n", of: key, most: 1025)[...])
            let exponent = DER.number(try Self.number("e", of: key, most: 8)[...])
            der = DER.sequence(Self.rsa + DER.bits(DER.sequence(parts + exponent)))
        case "EC":
            try Self.expect("crv", "P-256", in: key)
            let (x, y) = (try Self.number("x", of: key, exactly: 32), try Self.number("y", of: key, exactly: 32))
            der = DER.sequence(Self.p256 + DER.bits([0x04] + x + y))
        case "OKP":
            try Self.expect("crv", "Ed25519", in: key)
            der = DER.sequence(Self.ed25519 + DER.bits(try Self.number("x", of: key, exactly: 32)))
        case "oct": throw Unusable(description: "it is a shared secret, which nobody may publish")
        default: throw Unusable(description: "its kty is not RSA, EC or OKP")
        }
        try self.init(der: der)
        if let name = key["alg"] {
            guard let name = name.text, algorithm.names.contains(name) else {
                throw Unusable(description: "its alg is not \(algorithm.names.joined(separator: " or "))")
            }
        }
    }

    /// The AlgorithmIdentifiers of the three (RFC 3279, RFC 5480, RFC 8410).
    private static let rsa: [UInt8] = [
        0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
    ]
    private static let p256: [UInt8] = [
        0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d,
        0x03,
        0x01, 0x07,
    ]
    private static let ed25519: [UInt8] = [0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70]

    private static func expect(_ name: String, _ value: String, in key: JSONValue) throws(Unusable) {
        guard key[name]?.text == value else { throw Unusable(description: "its \(name) is not \(value)") }
    }

    private static func number(_ name: String, of key: JSONValue, most: Int) throws(Unusable) -> [UInt8] {
        guard let text = key[name]?.text, text.utf8.count <= most * 2, let bytes = Base64URL.decode(text),
            (1...most).contains(bytes.count)
        else { throw Unusable(description: "its \(name) is not base64url of 1 to \(most) bytes") }
        return bytes
    }

    private static func number(_ name: String, of key: JSONValue, exactly count: Int) throws(Unusable) -> [UInt8] {
        let bytes = try number(name, of: key, most: count)
        guard bytes.count == count else { throw Unusable(description: "its \(name) has not \(count) bytes") }
        return bytes
    }
}
