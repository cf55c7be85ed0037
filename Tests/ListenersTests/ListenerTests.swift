import Foundation
import Listeners
import Synchronization
import Telemetry
import TestSupport
import Testing

@Suite struct ListenerTests {
    private static let hello = Route(.get, "/hello", access: .everyone) { _ in .text("hello\n") }

    @Test func `a route answers with careful headers and without a banner`() async throws {
        try await withListener([Self.hello]) { listener in
            let answer = try await get(listener, "/hello")
            #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(answer.hasSuffix("\r\n\r\nhello\n"))
            for header in ["X-Content-Type-Options: nosniff", "Cache-Control: no-store", "Content-Length: 6"] {
                #expect(answer.contains(header + "\r\n"))
            }
            #expect(!answer.lowercased().contains("server:"))
        }
    }

    @Test func `HEAD has the head of GET; OPTIONS and a wrong method say what is allowed`() async throws {
        let routes = [
            Self.hello, Route(.post, "/hello", access: .everyone) { _ in .text("posted") },
            Route(.get, "/stream", access: .everyone) { _ in
                Response(body: .stream { _ in Issue.record("nobody asked for the body") })
            },
        ]
        try await withListener(routes) { listener in
            let head = try await get(listener, "/hello", method: "HEAD")
            #expect(head.contains("Content-Length: 6\r\n") && head.hasSuffix("\r\n\r\n"))
            let stream = try await get(listener, "/stream", method: "HEAD")
            #expect(stream.hasPrefix("HTTP/1.1 200") && stream.hasSuffix("\r\n\r\n"))
            #expect(!stream.contains("chunked") && !stream.contains("\r\n0\r\n"))
            let options = try await get(listener, "/hello", method: "OPTIONS")
            #expect(options.hasPrefix("HTTP/1.1 204") && options.contains("Allow: GET, POST, HEAD, OPTIONS\r\n"))
            #expect(try await get(listener, "*", method: "OPTIONS").hasPrefix("HTTP/1.1 204"))
            let wrong = try await get(listener, "/hello", method: "DELETE")
            #expect(wrong.hasPrefix("HTTP/1.1 405") && wrong.contains("Allow: GET, POST, HEAD, OPTIONS\r\n"))
            #expect(wrong.contains(#""error":"invalid""#))
        }
    }

    @Test func `what stands in the braces is decoded, and what cannot be is refused`() async throws {
        let route = Route(.get, "/v1/alarms/{token}/{step}", access: .verified) { request in
            .text("\(request.parameter("token"))|\(request.parameter("step"))|\(request.query("q") ?? "-")")
        }
        try await withListener([route]) { listener in
            #expect(try await get(listener, "/v1/alarms/a%2Fb/2?q=c+d%26").hasSuffix("\r\na/b|2|c d&"))
            for path in ["/v1/alarms/a/", "/v1/alarms/a", "/v1/alarms/a/b/c", "/v1/Alarms/a/b", "/"] {
                let answer = try await get(listener, path)
                #expect(answer.hasPrefix("HTTP/1.1 404") && answer.contains(#""error":"not_found""#))
            }
            for path in ["/v1/alarms/%zz/2", "/v1/alarms/%00/2", "/v1/alarms/%ff/2", "/v1/alarms/a/2?q=%4"] {
                let answer = try await get(listener, path)
                #expect(answer.hasPrefix("HTTP/1.1 400") && answer.contains(#""error":"invalid""#))
            }
        }
    }

    @Test func `the token opens, and nothing else does`() async throws {
        let route = Route(.get, "/closed", access: .token) { _ in .text("open") }
        let secret = "correct-horse-battery"
        try await withListener([route, Self.hello], token: secret) { listener in
            #expect(try await get(listener, "/closed", "Authorization: Bearer \(secret)\r\n").hasSuffix("open"))
            #expect(try await get(listener, "/closed", "authorization: bearer \(secret)\r\n").hasSuffix("open"))
            for header in [
                "", "Authorization: Bearer \r\n", "Authorization: Bearer correct-horse-batterz\r\n",
                "Authorization: Bearer \(secret)x\r\n", "Authorization: Basic \(secret)\r\n", "Cookie: \(secret)\r\n",
            ] {
                let answer = try await get(listener, "/closed", header)
                #expect(answer.hasPrefix("HTTP/1.1 401") && answer.contains("WWW-Authenticate: Bearer"))
            }
            #expect(try await get(listener, "/hello").hasSuffix("hello\n"), "health needs none")
        }
    }

    @Test func `without a token a page of another site gets nothing`() async throws {
        let route = Route(.post, "/act", access: .token) { _ in .text("done") }
        try await withListener([route]) { listener in
            func act(_ headers: String) async throws -> String {
                try await ask(
                    listener, "POST /act HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n\(headers)\r\n")
            }
            let port = listener.address.port
            #expect(try await act("Host: localhost:\(port)\r\n").hasSuffix("done"))
            #expect(try await act("Host: [::1]:\(port)\r\n").hasSuffix("done"))
            #expect(try await act("Host: localhost:1\r\nOrigin: http://localhost:1\r\n").hasSuffix("done"))
            for headers in [
                "Host: evil.example\r\n", "Host: 127.0.0.1.evil.example\r\n", "Host: localhost.evil.example\r\n",
                "Host: localhost\r\nOrigin: https://evil.example\r\n", "Host: localhost\r\nOrigin: null\r\n",
                "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
                // What a proxy on this machine passes on comes from elsewhere.
                "Host: localhost\r\nX-Forwarded-For: 198.51.100.1\r\n", "Host: localhost\r\nVia: 1.1 proxy\r\n",
                "Host: localhost\r\nforwarded: for=198.51.100.1\r\n",
            ] {
                let answer = try await act(headers)
                #expect(answer.hasPrefix("HTTP/1.1 403") && answer.contains(#""error":"permission""#), "\(headers)")
            }
        }
    }

    @Test func `it does not start where others can reach it without a token`() throws {
        for text in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let address = try #require(ListenAddress(text))
            #expect(throws: ListenerError.needsToken(text)) {
                _ = try Listener(Listener.Options(address: address), routes: [], log: .silent)
            }
        }
        let address = try #require(ListenAddress("0.0.0.0:0"))
        _ = try Listener(
            Listener.Options(address: address, token: AccessToken("0123456789abcdef")), routes: [], log: .silent)
        for text in [
            "", "8470", "localhost", "example.com:80", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:+1", "::1:80",
        ] {
            #expect(ListenAddress(text) == nil, "\(text)")
        }
    }

    @Test func `an address that is taken is told apart`() async throws {
        try await withListener([]) { listener in
            #expect(throws: ListenerError.taken(listener.address.description)) {
                _ = try Listener(Listener.Options(address: listener.address), routes: [], log: .silent)
            }
        }
    }

    @Test func `errors of a handler are answers of their class, and say nothing of the inside`() async throws {
        struct Oops: Error {}
        let lines = Mutex<[String]>([])
        let log = Log { line in lines.withLock { $0.append(line.text) } }
        let routes = [
            Route(.get, "/oops/{secret}", access: .everyone) { _ in throw Oops() },
            Route(.get, "/full", access: .everyone) { _ in
                throw ErrorAnswer(
                    .throttled, "too many", field: "who", hint: "wait", headers: [Header("Retry-After", "7")])
            },
        ]
        try await withListener(routes, log: log) { listener in
            let oops = try await get(listener, "/oops/hush?token=hush")
            #expect(oops.hasPrefix("HTTP/1.1 500") && !oops.contains("Oops"))
            let full = try await get(listener, "/full")
            #expect(full.hasPrefix("HTTP/1.1 429") && full.contains("Retry-After: 7\r\n"))
            #expect(full.hasSuffix(#"{"error":"throttled","field":"who","hint":"wait","message":"too many"}"# + "\n"))
            _ = try await get(listener, "/v1/hush/hush?x=hush")
            try await eventually("three lines") { lines.withLock { $0.count { $0.contains("answered") } } == 3 }
            let text = lines.withLock { $0.joined(separator: "\n") }
            #expect(text.contains("http.path=/oops/{secret}") && text.contains("http.status=500"))
            #expect(!text.contains("hush"))
            #expect(listener.counts.answered == [4: 2, 5: 1])
        }
    }
}
