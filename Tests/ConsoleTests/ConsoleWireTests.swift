import Foundation
import Listeners
import Signatures
import TestSupport
import Testing

@testable import Console

/// Paths, headers, bodies and web tokens that are not as they should be.
@Suite(.timeLimit(.minutes(10))) struct ConsoleWireTests {
    @Test func `tricks with paths reach nothing, and no answer shows what broke`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            for path in [
                "/console/../", "/console/../../etc/passwd", "/console/%2e%2e/",
                "/console/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
                "//console", "/console//", "/console//queues", "/console/./queues", "/console/queues/",
                "/console/queues%00",
                "/console/queues\u{0}", "/console/QUEUES", "/console;/queues", "/console/queues;a=b",
                "/console\\queues",
                "/console/console.css/..", "/console/console.css%00.html", "/console/jobs/%2e%2e", "/console/jobs/1e3",
                "/console/jobs/-", "/console/jobs/99999999999999999999", "/console/alarms/x", "/console/mail/1",
                "/console/documents/..%2f..", "/console/documents/%ff/preview", "http://evil.example/console", "*",
                "console",
                "/console/act/job.retry", "/console/webhooks/" + String(repeating: "a", count: 5000),
                "/console/jobs/1%0d%0aX: y",
                "/console/failures/0x1", "/console/operations/９", "/console/%", "/console/%zz", "/.git/config",
                "/metrics",
            ] {
                let answer = try await world.get(path)
                // The library closes what it does not take for HTTP.
                #expect([0, 400, 403, 404, 405, 414].contains(answer.status), "\(path): \(answer.status)")
                for word in ["root:", "/work/", "Fatal", ".swift", "select ", "X: y"] {
                    #expect(!answer.head.contains(word) && !answer.body.contains(word), "\(path) shows \(word)")
                }
            }
        }
    }

    @Test func `queries that make no sense are answered with a sentence`() async throws {
        try await ConsoleWorld.with { world in
            for address in [
                "/jobs?state=nonsense", "/jobs?after=x", "/jobs?since=yesterday", "/jobs?group=-", "/queue",
                "/queue?name=",
                "/schedule?name=nobody", "/provider?name=%27%3B%20drop%20table%20job", "/template?name=x&locale=%00",
                "/jobs?error=%00", "/past?at=2026-13-45T99:99", "/operations/new?action=explode&state=dead",
                "/operations/new", "/operations/new?action=retry&state=dead&group=x", "/mail?after=x",
                "/failures?after=9e9",
                "/documents/\(Seed.document)/page?page=99999999999999", "/jobs?kind=report.build&field=unknown&value=1",
                "/audit?after=-1&who=%F0%9F%98%80", "/jobs/1?flow=yes&flow=no", "/search?q=%",
                "/search?q=\(String(repeating: "x", count: 4000))",
            ] {
                let answer = try await world.get("/console\(address)")
                #expect(
                    [200, 303, 400, 404].contains(answer.status),
                    "\(address): \(answer.status) \(answer.body.suffix(600))")
                for word in [".swift", "syntax error", "invalid input syntax", "PL/pgSQL", "undecodable"] {
                    #expect(!answer.body.contains(word), "\(address) shows \(word)")
                }
            }
            #expect(try await world.connection.int("select count(*) from millrace.jobs") > 10)
        }
    }

    @Test func `huge heads and bodies are refused, and the console goes on`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            let million = String(repeating: "a", count: 1 << 20)
            let big = [
                try await world.get("/console", [("X-Big", million)]),
                try await world.get("/console", [("Cookie", million)]),
                try await world.get("/console?q=\(million)"), try await world.get("/console/\(million)"),
                try await world.get("/console", (0..<20_000).map { ("X-\($0)", "v") }),
            ]
            for answer in big {
                #expect([0, 400, 413, 414, 431].contains(answer.status), "\(answer.status)")
            }
            let form = try await world.post("/console/act/job.retry", [("id", million)])
            #expect([0, 400, 413].contains(form.status), "\(form.status)")
            let sign = try await world.post("/console/signin", [("secret", million)])
            #expect([0, 303, 400, 413].contains(sign.status), "\(sign.status)")
            let many = try await world.post("/console/act/job.retry", (0..<5000).map { ("f\($0)", "x") })
            #expect([400, 403, 413].contains(many.status), "\(many.status)")
            for body in ["%", "%zz=1", "a=%ff", "&&&&", "="] {
                let answer = try await RawAnswer.ask(
                    "POST /console/act/job.retry HTTP/1.1", host: world.host,
                    [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", "\(body.utf8.count)")],
                    body: body, port: world.port)
                #expect([400, 403].contains(answer.status), "\(body): \(answer.status)")
            }
            #expect(try await world.get("/console").status == 200)
        }
    }

    @Test func `every page forbids scripts, styles and frames of others, and is kept by nobody`() async throws {
        try await ConsoleWorld.with { world in
            for address in try await WalkTests.addresses(world).map(\.address) + ["/jobs/999999", "/signin"] {
                let answer = try await world.get("/console\(address)")
                let policy = answer.header("Content-Security-Policy") ?? ""
                #expect(
                    policy.hasPrefix("default-src 'none'; ") && policy.contains("frame-ancestors 'none'"), "\(address)")
                #expect(!policy.contains("unsafe") && !policy.contains("*"), "\(address)")
                #expect(
                    answer.header("Cache-Control") == "no-store" && answer.header("X-Content-Type-Options") == "nosniff"
                )
                for inline in [" style=", "<style", " onclick", " onload", "javascript:", "<script>"] {
                    #expect(!answer.body.contains(inline), "\(address) has \(inline)")
                }
            }
        }
        try await ConsoleWorld.with({
            $0.frames = "https://ops.example.com"
            $0.addition = nil
        }) { world in
            let answer = try await world.get("/console")
            #expect(
                answer.header("Content-Security-Policy")?.hasSuffix("frame-ancestors https://ops.example.com") == true)
            let preview = try await world.get("/console/template/preview?name=welcome&locale=en")
            let policy = try #require(preview.header("Content-Security-Policy"))
            #expect(preview.status == 200 && policy.contains("sandbox") && policy.contains("default-src 'none'"))
            #expect(policy.hasSuffix("frame-ancestors 'self' https://ops.example.com"))
        }
    }

    // MARK: tokens of a reverse proxy

    private static let secret = Array("0123456789abcdef0123456789abcdef".utf8)
    private static let curve = """
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7
        6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==
        -----END PUBLIC KEY-----

        """

    private func token(_ claims: String, head: String = #"{"alg":"HS256"}"#, secret: [UInt8] = secret) -> String {
        let message = Base64URL.encode(Array(head.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
        return message + "." + Base64URL.encode(HMAC.sha256(Array(message.utf8), key: secret))
    }

    private func claims(_ more: String = "", role: String = "viewer", for seconds: Double = 300) -> String {
        let end = Int(Date().timeIntervalSince1970 + seconds)
        return #"{"exp":\#(end),"iss":"https://sso","aud":"console","sub":"u1","millrace_role":"\#(role)"\#(more)}"#
    }

    @Test func `a web token of the proxy lets in with its role, and every bad one is refused`() async throws {
        let key = try VerifyingKey(pem: Array(Self.curve.utf8))
        try await ConsoleWorld.with({
            $0.addition = nil
            $0.access = ConsoleAccess(
                key: Self.secret,
                proxy: ProxyTokens(
                    rules: WebTokenRules(
                        keys: [.secret(Self.secret), .public(key)], issuer: "https://sso", audience: "console")))
        }) { world in
            func answer(_ token: String) async throws -> RawAnswer {
                try await world.get("/console/queues", [("Authorization", "Bearer \(token)")])
            }
            for role in ConsoleRole.allCases {
                let good = try await answer(token(claims(role: role.rawValue)))
                #expect(good.status == 200 && good.body.contains("<span class=\"role\">\(role.rawValue)</span>"))
            }
            let named = try await answer(token(claims(#","email":"<b>eve</b>""#)))
            #expect(
                named.status == 200 && named.body.contains("&lt;b&gt;eve&lt;/b&gt;") && !named.body.contains("<b>eve"))
            for (what, bad) in [
                ("none", token(claims(), head: #"{"alg":"none"}"#)),
                (
                    "none without a signature",
                    token(claims(), head: #"{"alg":"none"}"#).split(separator: ".").prefix(2).joined(separator: ".")
                        + "."
                ),
                ("the public key as a secret", token(claims(), secret: Array(Self.curve.utf8))),
                (
                    "the public key as a secret, said to be its own",
                    token(claims(), head: #"{"alg":"ES256"}"#, secret: Array(Self.curve.utf8))
                ),
                ("expired", token(claims(for: -60))),
                ("another audience", token(claims().replacing("\"console\"", with: "\"mail\""))),
                ("another issuer", token(claims().replacing("https://sso", with: "https://ss0"))),
                ("a role that is none", token(claims(role: "root"))),
                ("no role", token(claims().replacing("millrace_role", with: "role"))),
                ("another secret", token(claims(), secret: Array("another secret of thirty-two bytes".utf8))),
                ("garbage", "a.b.c"), ("two parts", "a.b"), ("long", String(repeating: "a.", count: 5000)),
            ] {
                let refused = try await answer(bad)
                #expect([400, 401, 431].contains(refused.status), "\(what): \(refused.status)")
                #expect(!refused.body.contains("<nav"), "\(what)")
            }
            let twice = try await world.get(
                "/console/queues",
                [
                    ("Authorization", "Bearer \(token(claims(role: "admin")))"),
                    ("Authorization", "Bearer \(token(claims()))"),
                ])
            #expect([400, 401].contains(twice.status))
            #expect(try await world.get("/console/queues").status == 401)
            #expect(try await world.get("/console/signin").status != 500)
        }
    }

    @Test func `groups of a web token give the role that may do most, and only those that are named`() throws {
        var tokens = ProxyTokens(rules: WebTokenRules(keys: [.secret(Self.secret)]))
        tokens.claim = "realm.groups"
        tokens.groups = ["sre": .operator, "leads": .admin, "all": .viewer]
        func role(_ groups: String) -> ConsoleRole? {
            let text = token(claims(#","realm":{"groups":\#(groups)}"#))
            guard case .visitor(let visitor) = tokens.answer(to: { _ in ["Bearer \(text)"] }, at: Date()) else {
                return nil
            }
            return visitor.role
        }
        #expect(
            role(#"["all","sre"]"#) == .operator && role(#"["leads","all"]"#) == .admin && role(#""all""#) == .viewer)
        #expect(
            role(#"["admin","operator"]"#) == nil && role("[]") == nil && role("null") == nil
                && role(#"{"a":1}"#) == nil)
    }
}
