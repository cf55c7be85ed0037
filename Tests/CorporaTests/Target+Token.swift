import FoundationEssentials
import JSON

@testable import Gateway
@testable import Signatures

extension Target {
    private static let secret = Array("a secret that no fuzzer has, of 32 bytes and more".utf8)
    private static let issuer = "https://issuer.example"
    private static let now = Date(timeIntervalSince1970: 1_800_000_000)
    /// RFC 8037's.
    private static let published = Array(
        #"{"keys":[{"kty":"OKP","kid":"e","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#.utf8)

    private static let rules = {
        let keys = (try? WebKeySet(published, issuers: [issuer]).keys) ?? []
        var rules = WebTokenRules(keys: [.secret(secret)] + keys, issuers: [issuer], audiences: ["app"])
        rules.types = ["jwt"]
        return rules
    }()

    /// Either a token, or two lines of header and claims, which are signed here so that the claims are looked at too.
    func token(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        if (try? Self.rules.check(text, at: Self.now)) != nil { return "a token that we did not sign is taken" }
        guard let end = bytes.firstIndex(of: 0x0a) else { return nil }
        let message = Base64URL.encode(Array(bytes[..<end])) + "." + Base64URL.encode(Array(bytes[(end + 1)...]))
        let signature = Base64URL.encode(HMAC.sha256(Array(message.utf8), key: Self.secret))
        guard let token = try? Self.rules.check(message + "." + signature, at: Self.now) else { return nil }
        if token.expires < Self.now.addingTimeInterval(-30) { return "it has expired, and is taken" }
        if token.claims["iss"]?.text != Self.issuer { return "another issuer's is taken" }
        if token.payload != Array(bytes[(end + 1)...]) { return "another payload comes out" }
        for claim in ["tenant", "org.tenant"] {
            guard let caller = try? GatewayClaims(tenantClaim: claim).caller(of: token) else { continue }
            if let complaint = Self.complaint(about: caller, of: token, claim) { return complaint }
        }
        return nil
    }

    /// The database must be told of the same person and tenant, in whatever way it reads the claims.
    private static func complaint(about caller: GatewayCaller, of token: WebToken, _ claim: String) -> String? {
        var reader = JSONReader(caller.claims, rules: JSONReader.Rules(allowsRepeatedKeys: false))
        guard let told = try? reader.document() else { return "the claims for the database cannot be read" }
        if told["sub"]?.text != caller.subject || token.claims["sub"]?.text != caller.subject {
            return "another person"
        }
        let tenant =
            claim == "tenant" ? token.claims["tenant"] : token.claims["org.tenant"] ?? token.claims["org"]?["tenant"]
        if let name = tenant?.text, !name.isEmpty, told["tenant"]?.text != name { return "another tenant" }
        if claim != "tenant", tenant?.text == nil, told["tenant"] != nil { return "a tenant from nowhere" }
        return caller.claims.count <= 65_536 ? nil : "more than the database takes"
    }

    /// What is taken has few keys, and each checks signatures without a crash.
    func keySet(_ bytes: [UInt8]) -> String? {
        guard let set = try? WebKeySet(bytes, issuers: [Self.issuer]) else { return nil }
        guard set.keys.count + set.unused.count <= WebKeySet.mostKeys else { return "too many keys" }
        let message = Array("a.b".utf8)
        for key in set.keys {
            if case .secret = key.form { return "a secret from a key set" }
            for count in [0, 1, 64, 256] where key.verifies(message, signature: [UInt8](repeating: 0, count: count)) {
                return "a signature of zeros is taken"
            }
        }
        return nil
    }
}
