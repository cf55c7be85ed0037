import Foundation
import JSON
import Listeners
import TestSupport
import Testing

@testable import Gateway
@testable import Signatures

/// Tokens as Supabase, Firebase and Auth0 issue them.
@Suite struct TokenShapeTests {
    private static let secret = "super-secret-jwt-token-with-at-least-32-characters-long"
    private let key = SigningKey.newP256()

    private func claims(_ caller: GatewayCaller) throws -> JSONValue { try JSONValue.read(caller.claims) }

    @Test func `Supabase: the tenant stands in app_metadata, and what users write themselves counts for nothing`()
        async throws
    {
        let bench = AccessBench { options in
            options.secrets = [Array(Self.secret.utf8)]
            options.issuers = ["https://x.supabase.co/auth/v1"]
            options.audiences = ["authenticated"]
            options.tenantClaim = "app_metadata.tenant"
        }
        func token(_ more: String, aud: String = "authenticated") -> String {
            bench.secretToken(
                #"{"iss":"https://x.supabase.co/auth/v1","aud":"\#(aud)","iat":1800000000,"exp":1800003600,"role":"authenticated","aal":"aal1","amr":[{"method":"password","timestamp":1800000000}],"session_id":"s1","is_anonymous":false\#(more)}"#,
                secret: Self.secret, head: #"{"alg":"HS256","kid":"gS3gYs","typ":"JWT"}"#)
        }
        let sub = #","sub":"0f3b7a52-8f86-4c44-a8c4-0b9b51a4d4b5""#
        let caller = try await bench.call(
            token(sub + #","app_metadata":{"provider":"email","tenant":"acme"},"user_metadata":{"tenant":"evil"}"#))
        #expect(caller.subject == "0f3b7a52-8f86-4c44-a8c4-0b9b51a4d4b5")
        let told = try claims(caller)
        #expect(told["tenant"] == "acme" && told["role"] == "authenticated")
        // Another claim of that name is not the tenant.
        let none = try await bench.call(token(sub + #","tenant":"evil","app_metadata":{"provider":"email"}"#))
        #expect(try claims(none)["tenant"] == nil)
        for tenant in ["7", "{}", #""a\u0001""#, "\"" + String(repeating: "x", count: 129) + "\""] {
            let refusal = await bench.refusal(token(sub + #","app_metadata":{"tenant":\#(tenant)}"#))
            #expect(refusal?.message.contains("app_metadata.tenant") == true, "\(tenant)")
        }
        // The keys of the project are tokens too, and name nobody.
        let anonymous = await bench.refusal(token(#","ref":"x""#))
        #expect(anonymous?.class == .authentication && anonymous?.message.contains("names no person") == true)
        #expect(await bench.refusal(token(sub, aud: "anon")) != nil)
    }

    @Test func `Firebase: keys that sign for all projects are good for one`() async throws {
        let issuer = TestIssuer("https://securetoken.google.com/joanie-app", keys: (key, "f1"))
        let other = TestIssuer("https://securetoken.google.com/evil-app")
        let bench = AccessBench(issuer) { $0.audiences = ["joanie-app"] }
        let more = #","auth_time":1800000000,"user_id":"u1","firebase":{"identities":{},"sign_in_provider":"password"}"#
        let good = try await bench.call(
            bench.token(key, "f1", by: issuer, sub: "u1", more: more + #","aud":"joanie-app""#))
        #expect(good.subject == "u1")
        #expect(try claims(good)["tenant"] == nil)
        let bad = [
            bench.token(key, "f1", by: other, sub: "u1", more: more + #","aud":"joanie-app""#),
            bench.token(key, "f1", by: issuer, sub: "u1", more: more + #","aud":"evil-app""#),
            bench.token(key, "f1", by: issuer, sub: "u1", more: more),
            bench.token(key, "f1", by: issuer, sub: "", more: more + #","aud":"joanie-app""#),
        ]
        for token in bad { #expect(await bench.refusal(token)?.class == .authentication) }
    }

    @Test func `Auth0: a list of audiences, and a claim whose name is an address`() async throws {
        let issuer = TestIssuer("https://joanie.eu.auth0.com/", keys: (key, "a1"))
        let bench = AccessBench(issuer) { options in
            options.audiences = ["https://api.joanie.example"]
            options.tenantClaim = "https://joanie.example/tenant"
        }
        let audiences =
            #","aud":["https://api.joanie.example","https://joanie.eu.auth0.com/userinfo"],"azp":"client","scope":"openid""#
        let caller = try await bench.call(
            bench.token(
                key, "a1", by: issuer, sub: "auth0|5f7c8ec7c33c6c004bbafe82",
                more: audiences + #","https://joanie.example/tenant":"acme""#))
        #expect(caller.subject == "auth0|5f7c8ec7c33c6c004bbafe82")
        #expect(try claims(caller)["tenant"] == "acme")
        // A token for the account page only, as an app gets it that names no audience.
        let account = #","aud":"https://joanie.eu.auth0.com/userinfo""#
        #expect(
            await bench.refusal(bench.token(key, "a1", by: issuer, more: account))?.message.contains("audience") == true
        )
    }

    @Test func `a person has a name that the database takes`() async throws {
        let issuer = TestIssuer("https://one", keys: (key, "1"))
        let bench = AccessBench(issuer)
        let longest = String(repeating: "ä", count: 128)
        #expect(try await bench.call(bench.token(key, "1", by: issuer, sub: longest)).subject == longest)
        for sub in [longest + "x", "a\\u0007b", "a\\u0085b", "a\\u007fb"] {
            #expect(await bench.refusal(bench.token(key, "1", by: issuer, sub: sub))?.message.contains("sub") == true)
        }
    }

    @Test func `what the database is told is the token's own claims`() throws {
        let claims: JSONValue = [
            "sub": "ada", "tenant": "evil", "role": "postgres", "device": "phone",
            "list": [1, "two", nil, ["three": 3.5]],
            "org": ["id": "acme"],
        ]
        let token = WebToken(payload: [], claims: claims, expires: .distantFuture)
        let caller = try GatewayClaims(tenantClaim: "org.id").caller(of: token)
        let told = try JSONValue.read(caller.claims)
        #expect(told["sub"] == "ada" && told["role"] == "postgres" && told["tenant"] == "acme")
        #expect(told["list"]?.items?.count == 4 && told["device"] == nil)
        let same = try GatewayClaims(tenantClaim: "tenant").caller(of: token)
        #expect(try JSONValue.read(same.claims)["tenant"] == "evil")
    }

    @Test func `the memory of callers is bounded, and keeps those who call`() {
        var recent = RecentCallers(capacity: 100)
        let now = Date(timeIntervalSince1970: 0)
        func caller(_ number: Int) -> GatewayCaller {
            GatewayCaller(subject: "\(number)", claims: [], expires: now.addingTimeInterval(60))
        }
        let regular = RecentCallers.digest("regular")
        recent.keep(caller(-1), of: regular)
        for number in 0..<1000 {
            recent.keep(caller(number), of: RecentCallers.digest("\(number)"))
            #expect(recent.caller(of: regular, at: now)?.subject == "-1")
            #expect(recent.count <= 100)
        }
        #expect(recent.caller(of: RecentCallers.digest("999"), at: now)?.subject == "999")
        #expect(recent.caller(of: RecentCallers.digest("0"), at: now) == nil)
        #expect(recent.caller(of: regular, at: now.addingTimeInterval(60)) == nil)
        recent.keep(caller(7), of: RecentCallers.digest("7"), generation: 1)
        #expect(recent.count == 1)
        let large = GatewayCaller(subject: "x", claims: [UInt8](repeating: 32, count: 5000), expires: .distantFuture)
        recent.keep(large, of: RecentCallers.digest("large"), generation: 1)
        #expect(recent.count == 1)
    }
}
