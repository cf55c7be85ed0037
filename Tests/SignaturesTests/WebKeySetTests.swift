import Foundation
import JSON
import Testing

@testable import Signatures

/// Keys of RFC 7515, RFC 7517 and RFC 8037.
@Suite struct WebKeySetTests {
    static let rsa = """
        {"kty":"RSA","kid":"rsa","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}
        """
    static let curve = """
        {"kty":"EC","kid":"curve","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}
        """
    static let edwards = """
        {"kty":"OKP","kid":"edwards","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
        """

    static func set(_ keys: String...) -> [UInt8] { Array(#"{"keys":[\#(keys.joined(separator: ","))]}"#.utf8) }

    /// Why the key is not used; nil: it is.
    private func reason(_ key: String) throws -> String? { try WebKeySet(Self.set(key)).unused.first }

    private func without(_ name: String, _ key: String, _ value: JSONValue? = nil) throws -> String {
        guard case .object(var members) = try JSONValue.read(key) else { return key }
        members.removeAll { $0.key == name }
        if let value { members.append(JSONValue.Member(key: name, value: value)) }
        return JSONValue.object(members).compact
    }

    @Test func `the published keys are read, and check the published tokens`() throws {
        let set = try WebKeySet(Self.set(Self.rsa, Self.curve, Self.edwards))
        #expect(set.unused.isEmpty, "\(set.unused)")
        #expect(set.keys.map(\.id) == ["rsa", "curve", "edwards"])
        let rules = WebTokenRules(keys: set.keys)
        for token in [WebTokenTests.signedByRSA, WebTokenTests.signedByCurve] {
            #expect(throws: Never.self) { try rules.check(token, at: WebTokenTests.before) }
        }
        let message = Array("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".utf8)
        let signature = try #require(
            Base64URL.decode("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"))
        #expect(try #require(set.keys.last).verifies(message, signature: signature))
    }

    @Test func `what no key set should have is left out, each with its reason`() throws {
        let keys: [(String, String)] = [
            (#"{"kty":"oct","kid":"x","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T"}"#, "shared secret"),
            (try without("d", Self.curve, "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"), "private key"),
            (try without("use", Self.rsa, "enc"), "use"),
            (try without("key_ops", Self.rsa, ["encrypt", "wrapKey"]), "key_ops"),
            (try without("alg", Self.rsa, "RS512"), "alg"), (try without("alg", Self.rsa, "PS256"), "alg"),
            (try without("alg", Self.edwards, "ES256"), "alg"), (try without("kid", Self.rsa, 7), "kid"),
            (try without("kid", Self.rsa, ""), "kid"), (try without("n", Self.rsa), "n is not"),
            (try without("n", Self.rsa, .string(String(repeating: "_", count: 172))), "2048"),
            (try without("e", Self.rsa, "AQ"), "numbers"),
            (try without("e", Self.rsa, "AQAA"), "numbers"), (try without("e", Self.rsa, "AQAB="), "base64url"),
            (try without("crv", Self.curve, "P-384"), "crv"), (try without("crv", Self.curve, "secp256k1"), "crv"),
            (try without("crv", Self.edwards, "X25519"), "crv"),
            (try without("y", Self.curve, "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a1"), "y is not"),
            (try without("y", Self.curve, "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a4"), "no key"),
            (try without("x", Self.edwards, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcH"), "32 bytes"),
            (try without("kty", Self.rsa, "rsa"), "kty"), ("7", "object"), ("{}", "kty"),
            (try without("x", Self.edwards, .string(String(repeating: "A", count: 43))), "numbers"),
        ]
        for (key, word) in keys {
            let said = try reason(key)
            #expect(said?.contains(word) == true, "\(word): \(said ?? "it is used") \(key)")
        }
        #expect(try WebKeySet(Self.set(keys[0].0, Self.rsa)).keys.map(\.id) == ["rsa"])
    }

    @Test(arguments: [
        "", "[]", "{}", #"{"keys":{}}"#, #"{"keys":[],"keys":[]}"#, "{\"keys\":[" + String(repeating: "[", count: 40),
        #"{"keys":["# + Array(repeating: "{}", count: 65).joined(separator: ",") + "]}",
        #"{"keys":[],"x":""# + String(repeating: "x", count: 262_144) + #""}"#,
    ]) func `what is no key set, or a large one, is refused as a whole`(document: String) {
        #expect(throws: WebKeySet.Malformed.self) { try WebKeySet(Array(document.utf8)) }
    }

    @Test func `a signing key lists its public half as a key set has it`() throws {
        let key = SigningKey.newP256()
        let set = try WebKeySet(Self.set(key.webKey(id: "one").compact))
        let token = key.token(header: #"{"alg":"ES256","kid":"one"}"#, payload: #"{"exp":1300819380}"#)
        #expect(throws: Never.self) { try WebTokenRules(keys: set.keys).check(token, at: WebTokenTests.before) }
    }

    @Test func `a curve of the same size is not the curve`() {
        let bitcoin = """
            -----BEGIN PUBLIC KEY-----
            MFYwEAYHKoZIzj0CAQYFK4EEAAoDQgAEqG0n/mOHTk6TS9VPkOC34Sc00KED/wC4
            YREbcKcxAf0AlySdylkxl1imd40trOF6fcXMatDGU9HKHboLdufIYQ==
            -----END PUBLIC KEY-----

            """
        #expect(throws: VerifyingKey.Unusable.self) { try VerifyingKey(pem: Array(bitcoin.utf8)) }
    }
}
