import FoundationEssentials
import Testing

@testable import Signatures

/// Keys and tokens of RFC 7515 and RFC 8037.
@Suite struct WebTokenTests {
    static let rsa = """
        -----BEGIN PUBLIC KEY-----
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAofgWCuLjybRlzo0tZWJj
        NiuSfb4p4fAkd/wWJcyQoTbji9k0l8W26mPddxHmfHQp+Vaw+4qPCJrcS2mJPMEz
        P1Pt0Bm4d4QlL+yRT+SFd2lZS+pCgNMsD1W/YpRPEwOWvG6b32690r2jZ47soMZo
        9wGzjb/7OMg0LOL+bSf63kpaSHSXndS5z5rexMdbBYUsLA9e+KXBdQOS+UTo7WTB
        EMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6/I5IhlJH7aGhyxX
        FvUK+DWNmoudF8NAco9/h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXp
        oQIDAQAB
        -----END PUBLIC KEY-----

        """
    static let curve = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7
        6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==
        -----END PUBLIC KEY-----

        """
    static let edwards = """
        -----BEGIN PUBLIC KEY-----
        MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
        -----END PUBLIC KEY-----

        """
    /// {"iss":"joe", "exp":1300819380, "http://example.com/is_root":true}
    static let payload =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    static let signedByRSA =
        "eyJhbGciOiJSUzI1NiJ9." + payload
        + ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
    static let signedByCurve =
        "eyJhbGciOiJFUzI1NiJ9." + payload
        + ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
    static let secret = Array("0123456789abcdef0123456789abcdef".utf8)
    static let before = Date(timeIntervalSince1970: 1_300_819_000)

    static func key(_ pem: String) throws -> VerifyingKey { try VerifyingKey(pem: Array(pem.utf8)) }

    static func token(_ claims: String, head: String = #"{"alg":"HS256"}"#, secret: [UInt8] = secret) -> String {
        let message = Base64URL.encode(Array(head.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
        return message + "." + Base64URL.encode(HMAC.sha256(Array(message.utf8), key: secret))
    }

    private func refusal(_ token: String, _ rules: WebTokenRules, at now: Date = before) -> WebTokenRules.Refusal? {
        do throws(WebTokenRules.Refusal) {
            _ = try rules.payload(of: token, at: now)
            return nil
        } catch {
            return error
        }
    }

    @Test func `the published tokens are taken with their keys, and with no other`() throws {
        let (rsa, curve) = (try Self.key(Self.rsa), try Self.key(Self.curve))
        #expect(rsa.algorithm == .rs256 && curve.algorithm == .es256)
        #expect(refusal(Self.signedByRSA, WebTokenRules(keys: [.public(rsa)])) == nil)
        #expect(refusal(Self.signedByCurve, WebTokenRules(keys: [.public(curve)])) == nil)
        #expect(refusal(Self.signedByCurve, WebTokenRules(keys: [.public(rsa), .public(curve)])) == nil)
        #expect(refusal(Self.signedByCurve, WebTokenRules(keys: [.public(rsa)])) == .algorithm)
        #expect(refusal(Self.signedByRSA, WebTokenRules(keys: [.secret(Self.secret)])) == .algorithm)
        let edwards = try Self.key(Self.edwards)
        let message =
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
        let signature = try #require(
            Base64URL.decode("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"))
        #expect(edwards.algorithm == .edDSA && edwards.verifies(Array(message.utf8), signature: signature))
        #expect(!edwards.verifies(Array((message + "x").utf8), signature: signature))
    }

    @Test func `a token that is changed in any place is refused`() throws {
        let rules = WebTokenRules(keys: [.public(try Self.key(Self.curve))])
        let bytes = Array(Self.signedByCurve.utf8)
        for place in stride(from: 0, to: bytes.count, by: 7) where bytes[place] != UInt8(ascii: ".") {
            var changed = bytes
            changed[place] = changed[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(refusal(String(decoding: changed, as: UTF8.self), rules) != nil, "place \(place)")
        }
        let parts = Self.signedByCurve.split(separator: ".")
        for empty in ["", String(repeating: "A", count: 85), String(repeating: "A", count: 86)] {
            #expect(refusal("\(parts[0]).\(parts[1]).\(empty)", rules) != nil)
        }
    }

    @Test func `the key decides the algorithm: none, and the public key as a secret, are refused`() throws {
        let rules = WebTokenRules(keys: [.public(try Self.key(Self.rsa))])
        let claims = #"{"exp":1300819380}"#
        for head in [#"{"alg":"none"}"#, #"{"alg":"None"}"#, #"{"alg":""}"#, #"{"alg":"HS256"}"#, #"{"alg":"hs256"}"#] {
            #expect(
                refusal(Self.token(claims, head: head, secret: Array(Self.rsa.utf8)), rules) == .algorithm, "\(head)")
        }
        let unsigned = Self.token(claims, head: #"{"alg":"none"}"#).split(separator: ".").prefix(2).joined(
            separator: ".")
        #expect(refusal(unsigned + ".", rules) != nil && refusal(unsigned, rules) == .malformed)
        #expect(
            refusal(Self.token(claims, head: #"{"alg":"RS256"}"#, secret: Array(Self.rsa.utf8)), rules) == .signature)
        #expect(refusal(Self.token(claims, head: #"{}"#), rules) == .malformed)
    }

    @Test func `times, issuer and audience are checked`() {
        var rules = WebTokenRules(keys: [.secret(Self.secret)], issuer: "https://sso", audience: "console")
        func check(_ claims: String) -> WebTokenRules.Refusal? { refusal(Self.token(claims), rules) }
        let good = #"{"exp":1300819380,"iss":"https://sso","aud":"console"}"#
        #expect(check(good) == nil)
        #expect(check(#"{"exp":1300819380.5,"iss":"https://sso","aud":["x","console"]}"#) == nil)
        #expect(check(#"{"exp":1300818900,"iss":"https://sso","aud":"console"}"#) == .expired)
        #expect(check(#"{"iss":"https://sso","aud":"console"}"#) == .noExpiry)
        #expect(check(#"{"exp":1300819380,"nbf":1300819370,"iss":"https://sso","aud":"console"}"#) == .early)
        #expect(check(#"{"exp":1300819380,"iss":"https://sso.evil","aud":"console"}"#) == .issuer)
        #expect(check(#"{"exp":1300819380,"aud":"console"}"#) == .issuer)
        #expect(check(#"{"exp":1300819380,"iss":"https://sso","aud":"consoles"}"#) == .audience)
        #expect(check(#"{"exp":1300819380,"iss":"https://sso"}"#) == .audience)
        #expect(check(#"{"exp":"1300819380","iss":"https://sso","aud":"console"}"#) == .malformed)
        #expect(check(#"{"exp":1e400,"iss":"https://sso","aud":"console"}"#) != nil)
        #expect(check("no JSON") == .malformed)
        rules.keys = [.secret(Array("another secret of thirty-two bytes".utf8))]
        #expect(check(good) == .signature)
    }

    @Test(arguments: ["", ".", "..", "a.b", "a.b.c", "a.b.c.d", "Zg.Zg.Zg", String(repeating: "a.", count: 9000)])
    func `what is no token is refused`(text: String) {
        #expect(refusal(text, WebTokenRules(keys: [.secret(Self.secret)])) == .malformed)
    }

    @Test func `keys that are none, private, weak or of another curve are refused with the reason`() {
        let weak = """
            -----BEGIN PUBLIC KEY-----
            MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAK8Q+ToR4tWGshaKYRHKJ3ZmMUF6jjwC
            S/u1A8v1tFbQiVpBlxYB2paNcT2ENEXBGdmWqr8VwSl0NBIKyq4p0rUCAwEAAQ==
            -----END PUBLIC KEY-----

            """
        for pem in ["", "x", "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n", weak] {
            do throws(VerifyingKey.Unusable) {
                _ = try VerifyingKey(pem: Array(pem.utf8))
                Issue.record("taken: \(pem)")
            } catch {
                #expect(error.description.contains("it is not"))
            }
        }
    }
}
