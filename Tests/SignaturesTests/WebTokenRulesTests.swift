import Foundation
import JSON
import TestSupport
import Testing

@testable import Signatures

@Suite struct WebTokenRulesTests {
    static let now = WebTokenTests.before
    static let good = #"{"exp":1300819380,"sub":"ada","iss":"https://one","aud":"app"}"#
    private let one = SigningKey.newP256()
    private let two = SigningKey.newP256()

    private func keys(_ pairs: (SigningKey, String)..., issuers: [String] = []) throws -> [WebTokenRules.Key] {
        try WebKeySet(
            Array(#"{"keys":[\#(pairs.map { $0.0.webKey(id: $0.1).compact }.joined(separator: ","))]}"#.utf8),
            issuers: issuers
        ).keys
    }

    private func token(_ key: SigningKey, _ id: String?, _ claims: String = good, more: String = "") -> String {
        key.token(header: #"{"alg":"ES256"\#(id.map { #","kid":"\#($0)""# } ?? "")\#(more)}"#, payload: claims)
    }

    private func refusal(_ token: String, _ rules: WebTokenRules, at now: Date = now) -> WebTokenRules.Refusal? {
        do throws(WebTokenRules.Refusal) {
            _ = try rules.check(token, at: now)
            return nil
        } catch {
            return error
        }
    }

    @Test func `the id chooses the key, and an unknown id is said to be one`() throws {
        let rules = WebTokenRules(keys: try keys((one, "1"), (two, "2")))
        #expect(refusal(token(one, "1"), rules) == nil && refusal(token(two, "2"), rules) == nil)
        #expect(refusal(token(one, "2"), rules) == .signature)
        #expect(refusal(token(one, "3"), rules) == .unknownKey)
        #expect(refusal(token(two, nil), rules) == nil)
        #expect(refusal(token(SigningKey.newP256(), nil), rules) == .signature)
        // What no key set has cannot be found in a newer one.
        #expect(refusal(WebTokenTests.token(Self.good, head: #"{"alg":"HS256","kid":"3"}"#), rules) == .algorithm)
        for name in ["none", "HS512", "RS512", "PS256", "ES384", "es256", ""] {
            let head = #"{"alg":"\#(name)","kid":"3"}"#
            #expect(refusal(WebTokenTests.token(Self.good, head: head), rules) == .algorithm, "\(name)")
        }
        #expect(refusal(token(one, "1", more: #","kid":7"#), rules) == .repeatedKey)
        #expect(refusal(one.token(header: #"{"alg":"ES256","kid":7}"#, payload: Self.good), rules) == .malformed)
    }

    @Test func `a secret beside a key set is tried for HS256 alone, whatever id the token names`() throws {
        let rules = WebTokenRules(keys: [.secret(WebTokenTests.secret)] + (try keys((one, "1"))))
        #expect(refusal(WebTokenTests.token(Self.good, head: #"{"alg":"HS256","kid":"legacy"}"#), rules) == nil)
        #expect(refusal(token(one, "1"), rules) == nil)
        #expect(refusal(token(one, "legacy"), rules) == .unknownKey)
        let known = Array(one.webKey(id: "1").compact.utf8)
        #expect(refusal(WebTokenTests.token(Self.good, secret: known), rules) == .signature)
        #expect(refusal(WebTokenTests.token(Self.good, head: #"{"alg":"ES256"}"#), rules) == .signature)
    }

    @Test func `extensions that must be understood are not, so the token is refused`() throws {
        let rules = WebTokenRules(keys: try keys((one, "1")))
        for more in [
            #","crit":["exp"],"exp":1"#, #","crit":[]"#, #","crit":null"#, #","b64":false,"crit":["b64"]"#,
            #","b64":true"#,
        ] {
            #expect(refusal(token(one, "1", more: more), rules) == .critical, "\(more)")
        }
        for more in [
            #","jku":"https://evil.example/keys""#, #","x5u":"https://evil.example""#, #","jwk":{"kty":"EC"}"#,
        ] {
            #expect(refusal(token(one, "1", more: more), rules) == nil, "it is not looked at: \(more)")
        }
    }

    @Test func `keys that stand twice are refused, at any depth`() throws {
        let rules = WebTokenRules(keys: try keys((one, "1")))
        #expect(refusal(token(one, "1", more: #","alg":"ES256""#), rules) == .repeatedKey)
        for claims in [
            #"{"exp":1300819380,"sub":"ada","sub":"eve"}"#, #"{"exp":1,"exp":1300819380}"#,
            #"{"exp":1300819380,"app":{"tenant":"a","tenant":"b"}}"#,
            #"{"exp":1300819380,"s\u0075b":"ada","sub":"eve"}"#,
        ] {
            #expect(refusal(token(one, "1", claims), rules) == .repeatedKey, "\(claims)")
        }
        for claims in ["[]", "7", "{} {}", "{\"exp\":1300819380,}", "{\"exp\":1300819380,\"a\":\"\\u0000\"}"] {
            #expect(refusal(token(one, "1", claims), rules) == .malformed, "\(claims)")
        }
        let deep = String(repeating: "[", count: 20) + String(repeating: "]", count: 20)
        #expect(refusal(token(one, "1", #"{"exp":1300819380,"x":\#(deep)}"#), rules) == .malformed)
        let long = #"{"exp":1300819380,"x":"\#(String(repeating: "x", count: 13_000))"}"#
        #expect(refusal(token(one, "1", long), rules) == .tooLarge)
    }

    @Test func `the clock may be wrong by the leeway, and no more`() throws {
        let rules = WebTokenRules(keys: try keys((one, "1")))
        let seconds = Int(Self.now.timeIntervalSince1970)
        func check(_ claims: String) -> WebTokenRules.Refusal? { refusal(token(one, "1", claims), rules) }
        #expect(check(#"{"exp":\#(seconds - 29)}"#) == nil && check(#"{"exp":\#(seconds - 30)}"#) == .expired)
        #expect(check(#"{"exp":\#(seconds + 99),"nbf":\#(seconds + 30)}"#) == nil)
        #expect(check(#"{"exp":\#(seconds + 99),"nbf":\#(seconds + 31)}"#) == .early)
        #expect(check(#"{"exp":\#(seconds + 99),"iat":\#(seconds + 300)}"#) == nil)
        #expect(check(#"{"exp":\#(seconds + 99),"iat":\#(seconds + 301)}"#) == .issuedAhead)
        for bad in [#""1300819380""#, "true", "{}", "1e99", "-1e400"] {
            #expect(check(#"{"exp":\#(bad)}"#) == .malformed, "\(bad)")
            #expect(check(#"{"exp":1300819380,"nbf":\#(bad)}"#) == .malformed, "\(bad)")
        }
        #expect(check(#"{"exp":null}"#) == .malformed && check("{}") == .noExpiry)
    }

    @Test func `a key set signs for its own issuer alone`() throws {
        var rules = WebTokenRules(
            keys: try keys((one, "1"), issuers: ["https://one"]) + (try keys((two, "2"), issuers: ["https://two"])),
            issuers: ["https://one", "https://two"], audiences: ["app", "other"])
        func claims(_ issuer: String, _ audience: String = #""app""#) -> String {
            #"{"exp":1300819380,"iss":"\#(issuer)","aud":\#(audience)}"#
        }
        #expect(refusal(token(one, "1", claims("https://one")), rules) == nil)
        #expect(refusal(token(two, "2", claims("https://two", #"["x","other"]"#)), rules) == nil)
        #expect(refusal(token(two, "2", claims("https://one")), rules) == .issuer)
        #expect(refusal(token(one, "1", claims("https://three")), rules) == .issuer)
        #expect(refusal(token(one, "1", claims("https://one", #"["x"]"#)), rules) == .audience)
        #expect(refusal(token(one, "1", claims("https://one", #"["app",7]"#)), rules) == .malformed)
        #expect(refusal(token(one, "1", claims("https://one", "[]")), rules) == .audience)
        rules.types = ["jwt", "at+jwt"]
        for (type, isTaken) in [("JWT", true), ("at+jwt", true), ("logout+jwt", false), ("dpop+jwt", false)] {
            let found = refusal(token(one, "1", claims("https://one"), more: #","typ":"\#(type)""#), rules)
            #expect(found == (isTaken ? nil : .type), "\(type)")
        }
    }

    @Test func `a token that is changed anywhere is never taken`() throws {
        let rules = WebTokenRules(keys: [.secret(WebTokenTests.secret)] + (try keys((one, "1"))))
        let tokens = [token(one, "1"), token(one, nil), WebTokenTests.token(Self.good)].map { Array($0.utf8) }
        var random = SeededRandom(39)
        let letters = Array("ABCxyz019-_.=+/ \n\0".utf8)
        for _ in 0..<3000 {
            let token = tokens[random.below(tokens.count)]
            var changed = token
            for _ in 0...random.below(3) {
                let place = random.below(changed.count)
                switch random.below(4) {
                case 0: changed[place] = letters[random.below(letters.count)]
                case 1: changed.insert(letters[random.below(letters.count)], at: place)
                case 2: changed.remove(at: place)
                default: changed.removeSubrange(place..<min(changed.count, place + random.below(40)))
                }
                if changed.isEmpty { changed = [UInt8(ascii: ".")] }
            }
            guard changed != token else { continue }
            let text = String(decoding: changed, as: UTF8.self)
            #expect(refusal(text, rules) != nil, "\(text)")
        }
    }
}
