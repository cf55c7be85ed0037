import Foundation
import Glibc
import Listeners
import Synchronization
import TestSupport
import Testing

/// Clients that mean no good, or know no better.
@Suite(.serialized) struct HostileClientTests {
    private static let hello = Route(.get, "/hello", access: .everyone) { _ in .text("hello\n") }
    private static let take = Route(.post, "/take", access: .everyone, limit: 10_000_000) { request in
        .text("\(try await request.body.collect().count)")
    }

    @Test(arguments: [
        ("GET /hello HTTP/1.1\r\n\r\n", "400"),
        ("GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
        ("POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
        ("POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "400"),
        ("POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nhello", "400"),
        ("POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello", "400"),
        ("POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", "413"),
        ("POST /take HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"),
        ("GET /hello HTTP/9.9\r\nHost: a\r\n\r\n", "505"),
        ("GET http://a/hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "400"),
    ]) func `a malformed request is refused`(_ request: String, _ status: String) async throws {
        try await withListener([Self.hello, Self.take]) { listener in
            let answer = try await ask(listener, request)
            #expect(
                answer.hasPrefix("HTTP/1.1 \(status)") || answer.hasPrefix("HTTP/1.0 \(status)"),
                "\(answer.prefix(200))")
            #expect(answer.components(separatedBy: "HTTP/1.").count == 2, "one head: \(answer)")
            #expect(try await get(listener, "/hello").hasSuffix("hello\n"))
        }
    }

    @Test func `headers that are too large are refused, a little and by far`() async throws {
        try await withListener([Self.hello]) { listener in
            let little = try await get(listener, "/hello", "X-Long: \(String(repeating: "a", count: 20_000))\r\n")
            #expect(little.hasPrefix("HTTP/1.1 431") && little.contains(#""error":"too_large""#))
            let many = try await get(listener, "/hello", String(repeating: "X-Many: 1\r\n", count: 101))
            #expect(many.hasPrefix("HTTP/1.1 431"))
            let wire = try Wire(to: listener.address.port)
            wire.send("GET /hello HTTP/1.1\r\nHost: a\r\nX-Long: \(String(repeating: "a", count: 90_000))\r\n\r\n")
            #expect(try await wire.readToEnd().hasPrefix("HTTP/1.1 431"))
            #expect(try await get(listener, "/hello").hasSuffix("hello\n"))
        }
    }

    @Test func `a client that drips headers or a body is cut, and a slow one that keeps sending goes on`() async throws
    {
        try await withListener(
            [Self.hello, Self.take],
            change: { options in
                // Longer than this process may be kept from sending.
                options.headPatience = .seconds(5)
                options.stallPatience = .seconds(5)
            }
        ) { listener in
            let silent = try Wire(to: listener.address.port)
            let dripping = try Wire(to: listener.address.port)
            dripping.send("GET /hello HTTP/1.1\r\nHost: a\r\nX-Drip: ")
            let body = try Wire(to: listener.address.port)
            body.send("POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
            let diligent = try Wire(to: listener.address.port)
            diligent.send("POST /take HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 160000\r\n\r\n")
            let piece = String(repeating: "x", count: 20_000)
            var pieces = 0
            var cut: Set<Int32> = []
            try await eventually("three are cut, and one is through") {
                for wire in [silent, dripping, body] where !cut.contains(wire.descriptor) {
                    if wire !== silent { wire.send("x") }
                    if wire.read() == nil { cut.insert(wire.descriptor) }
                }
                // A little in each third of its patience.
                if pieces < 8, diligent.send(piece) == 20_000 { pieces += 1 }
                try await Task.sleep(for: .milliseconds(300))
                return cut.count == 3 && pieces == 8
            }
            #expect(try await diligent.readToEnd().hasSuffix("160000"))
        }
    }

    @Test func `a thousand that only hold connections open keep nobody out`() async throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = min(limit.rlim_max, 8192)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        try await withListener([Self.hello], change: { $0.connections = 200 }) { listener in
            var slow: [Wire] = []
            for number in 0..<1000 {
                let wire = try Wire(to: listener.address.port)
                wire.send("GET /hello HTTP/1.1\r\nHost: a\r\nX-Slow: ")
                slow.append(wire)
                if number % 100 == 99 { #expect(try await get(listener, "/hello").hasSuffix("hello\n")) }
            }
            for _ in 0..<20 { #expect(try await get(listener, "/hello").hasSuffix("hello\n")) }
            try await eventually("no more are open than may be") { listener.counts.connections <= 201 }
            withExtendedLifetime(slow) {}
        }
    }

    @Test func `many at once are all answered`() async throws {
        let route = Route(.get, "/n/{n}", access: .everyone) { request in
            try await Task.sleep(for: .milliseconds(1))
            return .text("<\(request.parameter("n"))>")
        }
        try await withListener([route]) { listener in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for n in 0..<200 {
                    group.addTask {
                        let wire = try Wire(to: listener.address.port)
                        for turn in 0..<10 {  // on one connection, kept alive
                            wire.send("GET /n/\(n)-\(turn) HTTP/1.1\r\nHost: a\r\n\r\n")
                            _ = try await wire.read(until: "<\(n)-\(turn)>")
                        }
                    }
                }
                try await group.waitForAll()
            }
            try await eventually("all are counted") { listener.counts.answered == [2: 2000] }
        }
    }

    @Test func `it stops when requests have ended, and cuts those that do not`() async throws {
        let state = Mutex<[String]>([])
        let routes = [
            Route(.get, "/soon", access: .everyone) { _ in
                state.withLock { $0.append("soon began") }
                try await Task.sleep(for: .milliseconds(300))
                return .text("done")
            },
            Route(.get, "/never", access: .everyone) { _ in
                state.withLock { $0.append("never began") }
                do { try await Task.sleep(for: .seconds(600)) } catch { state.withLock { $0.append("cancelled") } }
                return .text("never")
            },
        ]
        let (soon, never, port) = try await withListener(routes) { listener in
            let soon = try Wire(to: listener.address.port)
            soon.send("GET /soon HTTP/1.1\r\nHost: a\r\n\r\n")
            let never = try Wire(to: listener.address.port)
            never.send("GET /never HTTP/1.1\r\nHost: a\r\n\r\n")
            try await eventually("both have begun") { state.withLock { $0.count } == 2 }
            return (soon, never, listener.address.port)
        }
        let answer = try await soon.readToEnd()
        #expect(answer.hasSuffix("done") && answer.contains("Connection: close"))
        #expect(try await never.readToEnd() == "")
        try await eventually("it was cancelled") { state.withLock { $0.contains("cancelled") } }
        #expect(throws: (any Error).self) { _ = try Wire(to: port) }
    }
}
