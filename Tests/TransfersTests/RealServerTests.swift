import Fakes
import TestSupport
import Testing

@testable import Transfers

@Suite struct RealServerTests {
    private func client(_ server: WebServer) -> HTTPClient {
        var configuration = HTTPClient.Configuration()
        configuration.loop.trust = Trust(certificates: server.certificates.authority)
        return HTTPClient(configuration)
    }

    @Test func `HTTP 2 comes with TLS, and many requests share one connection`() async throws {
        try await withNginx { server in
            let client = client(server)
            let fresh = try await withThrowingTaskGroup(of: HTTPResponse.self) { group in
                for _ in 0..<64 { group.addTask { try await client.send(patient("GET", "\(server.tls)/small")) } }
                var fresh = 0
                for try await response in group {
                    #expect(response.head.version == "2" && response.text == "a few bytes")
                    if !response.head.wasReused { fresh += 1 }
                }
                return fresh
            }
            #expect(fresh == 1)
            var old = patient("GET", "\(server.tls)/agent")
            old.version = .http1
            let answer = try await client.send(old)
            #expect(answer.head.version == "1.1" && answer.text == "Millrace")
        }
    }

    @Test func `a certificate that nobody vouches for is refused`() async throws {
        try await withNginx { server in
            let untrusting = try await failure(as: TransferError.self) {
                _ = try await HTTPClient().send(patient("GET", "\(server.tls)/small"))
            }
            #expect(untrusting?.kind == .tls && untrusting?.stage == .unsent && untrusting?.code == 60)
            var configuration = HTTPClient.Configuration()
            configuration.loop.trust = Trust(
                certificates: server.certificates.authority, names: ["other.example:\(server.port):127.0.0.1"])
            let misnamed = try await failure(as: TransferError.self) {
                _ = try await HTTPClient(configuration).send(
                    patient("GET", "https://other.example:\(server.port)/small"))
            }
            #expect(misnamed?.kind == .tls && misnamed?.stage == .unsent)
        }
    }

    @Test func `a reader that stands still does not hold up its neighbours on the same connection`() async throws {
        try await withNginx { server in
            let client = client(server)
            var request = patient("GET", "\(server.tls)/large")
            request.limits.bodyBytes = 1 << 30
            let count = try await client.stream(request) { head, body in
                #expect(head.version == "2")
                var count = try await body.next()?.count ?? 0
                for _ in 0..<20 {
                    let small = try await client.send(patient("GET", "\(server.tls)/small"))
                    #expect(small.text == "a few bytes" && small.head.wasReused)
                }
                while let bytes = try await body.next() { count += bytes.count }
                return count
            }
            #expect(count == 64 << 20)
        }
    }

    @Test func `redirects are answers unless asked for, bounded, and never lead out of https`() async throws {
        try await withNginx { server in
            let client = client(server)
            var request = patient("GET", "\(server.tls)/here")
            let answer = try await client.send(request)
            #expect(answer.status == 302)
            request.redirects = .followed(most: 3)
            let there = try await client.send(request)
            #expect(there.text == "a few bytes")
            for (path, stage) in [("again", TransferError.Stage.answered), ("away", .answered)] {
                request.url = "\(server.tls)/\(path)"
                let error = try await failure(as: TransferError.self) { _ = try await client.send(request) }
                #expect(error?.kind == .redirect && error?.stage == stage)
            }
        }
    }

    @Test func `credentials do not follow to another origin`() async throws {
        let seen = Locked<[String]>([])
        let note: @Sendable (String, RawConnection) -> Bool = { head, connection in
            seen.withLock { $0.append(head) }
            return connection.answer("there")
        }
        try await withServer(answering(note)) { _, there in
            try await withServer(
                answering { head, connection in
                    head.hasPrefix("GET /own")
                        ? note(head, connection)
                        : connection.answer(
                            "", status: "307 Moved",
                            headers: "Location: \(head.contains("/near") ? "/own" : there)\r\n")
                }
            ) { _, here in
                let headers: HTTPHeaders = [
                    "Authorization": "hidden", "Cookie": "hidden", "X-Secret": "hidden", "Accept": "text/plain",
                ]
                let client = HTTPClient()
                for path in ["/near", "/far"] {
                    var request = patient("GET", "\(here)\(path)", headers: headers)
                    request.redirects = .followed(most: 1)
                    let answer = try await client.send(request)
                    #expect(answer.text == "there")
                }
            }
        }
        let heads = seen.withLock { $0 }
        #expect(heads.count == 2)
        #expect(heads.first?.components(separatedBy: "hidden") == 4)
        #expect(heads.last?.contains("hidden") == false)
        #expect(heads.last?.contains("Accept: text/plain") == true)
    }

    @Test func `HTTP 2 without TLS goes on request`() async throws {
        guard let nghttpd = Programs.nghttpd else { throw Failed(description: "nghttpd is not installed") }
        let directory = try temporaryDirectory()
        try write("over h2c", to: "\(directory)/small")
        let port = try freePort()
        try await withProgram(nghttpd, ["--no-tls", "-a", "127.0.0.1", "-d", directory, "\(port)"], port: port) {
            let client = HTTPClient()
            for number in 0..<3 {
                var request = patient("GET", "http://127.0.0.1:\(port)/small")
                request.version = .http2
                let response = try await client.send(request)
                #expect(response.head.version == "2" && response.text == "over h2c")
                #expect(response.head.wasReused == (number > 0 && !TransferPlan.breaksPlainConnections))
            }
        }
    }

    @Test func `a kept connection is checked again when it is used again`() async throws {
        try await withNginx { server in
            var configuration = HTTPClient.Configuration()
            configuration.loop.trust = Trust(
                certificates: server.certificates.authority, names: ["hooks.example:\(server.port):127.0.0.1"])
            let trusting = HTTPClient(configuration)
            let request = patient("GET", "https://hooks.example:\(server.port)/small")
            let first = try await trusting.send(request)
            #expect(first.text == "a few bytes")
            // No two clients share a loop; these do, so that only the second look stands between.
            let strict = HTTPClient(.strict(), on: trusting.loop)
            let error = try await failure(as: TransferError.self) { _ = try await strict.send(request) }
            #expect(error?.kind == .refused && error?.stage == .unsent)
            #expect(error?.sentence.contains("loopback") == true)
        }
    }
}

extension String {
    fileprivate func components(separatedBy word: String) -> Int { ranges(of: word).count + 1 }
}
