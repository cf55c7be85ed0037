import Fakes
import TestSupport
import Testing

import func TestSupport.eventually

@testable import Transfers

@Suite struct RequestTests {
    @Test func `a request arrives as it was given and its answer comes back whole`() async throws {
        let seen = Locked("")
        try await withServer { connection in
            guard let head = connection.readHead(), let body = connection.read(exactly: 5) else { return }
            seen.withLock { $0 = head + String(decoding: body, as: UTF8.self) }
            connection.answer("received", status: "201 Created", headers: "X-One: a\r\nx-one:  b \r\nX-Empty:\r\n")
        } _: { _, url in
            let client = HTTPClient()
            var request = patient("POST", "\(url)/things?n=1#part", headers: ["X-Key": "1", "X-Nothing": ""])
            request.body = .bytes(Array("hello".utf8))
            let response = try await client.send(request)
            #expect(response.status == 201)
            #expect(response.text == "received")
            #expect(response.headers.all("X-ONE") == ["a", "b"])
            #expect(response.headers["X-Empty"] == "")
            #expect(response.head.version == "1.1")
            #expect(!response.head.wasReused)
        }
        let text = seen.withLock { $0 }
        #expect(text.hasPrefix("POST /things?n=1 HTTP/1.1\r\n"))
        #expect(text.contains("\r\nX-Key: 1\r\n") && text.contains("\r\nX-Nothing:\r\n"))
        #expect(text.contains("\r\nUser-Agent: Millrace\r\n") && text.contains("\r\nContent-Length: 5\r\n"))
        #expect(!text.contains("Expect") && !text.contains("Content-Type"))
        #expect(text.hasSuffix("\r\n\r\nhello"))
    }

    @Test(arguments: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"])
    func `every method goes out under its name`(method: String) async throws {
        let seen = Locked("")
        try await withServer(
            answering { head, connection in
                seen.withLock { $0 = head }
                return connection.write("HTTP/1.1 204 Fine\r\n\r\n")
            }
        ) { _, url in
            let client = HTTPClient()
            let first = try await client.send(HTTPRequest(method, url))
            #expect(first.status == 204)
            #expect(seen.withLock { $0 }.hasPrefix("\(method) / HTTP/1.1\r\n"))
            var request = HTTPRequest(method, url, body: .bytes([]))
            if method != "HEAD" {
                let second = try await client.send(request)
                #expect(second.status == 204)
                #expect(seen.withLock { $0 }.contains("\(method) / HTTP/1.1\r\n"))
            }
            request.headers.add("User-Agent", "another/1")
            request.body = .none
            let third = try await client.send(request)
            #expect(third.status == 204)
            #expect(seen.withLock { $0 }.contains("User-Agent: another/1"))
        }
    }

    @Test func `what would end a line or is no token never leaves`() async throws {
        try await withServer {
            $0.waitForEnd()
        } _: { server, url in
            let client = HTTPClient()
            let bad: [(String, String)] = [
                ("X-A", "1\r\nX-B: 2"), ("X-A", "1\n2"), ("X-A", "\0"), ("X-A", "a\u{7f}"), ("X\r\nA", "1"), ("", "1"),
                ("X A", "1"), ("X:A", "1"), ("Ä", "1"), ("Content-Length", "1"), ("transfer-encoding", "chunked"),
                ("Host", "other"), ("connection", "close"),
            ]
            for (name, value) in bad {
                let error = try await failure(as: TransferError.self) {
                    _ = try await client.send(patient("GET", url, headers: [name: value]))
                }
                #expect(error?.kind == .invalid && error?.stage == .unsent, "\(name.debugDescription)")
            }
            for method in ["", "GET /", "GET\r\n", "GÉT", String(repeating: "A", count: 65)] {
                let error = try await failure(as: TransferError.self) {
                    _ = try await client.send(HTTPRequest(method, url))
                }
                #expect(error?.kind == .invalid)
            }
            for url in [
                "", "nonsense", "ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1:1/", "http://",
                "http://a b/", "http://a\r\nb/", "http://user@127.0.0.1/", "http://user:secret@127.0.0.1/",
                "http://127.0.0.1:99999/", "http://127.0.0.1/\0", "//127.0.0.1/", "/path",
            ] {
                let error = try await failure(as: TransferError.self) { _ = try await client.send(patient("GET", url)) }
                #expect(error?.kind == .invalid, "\(url.debugDescription)")
                #expect(error?.description.contains("secret") == false)
            }
            #expect(server.accepted == 0)
        }
    }

    @Test func `neither requests nor errors tell secrets`() async throws {
        let request = HTTPRequest(
            "POST", "https://h.example/?token=hidden", headers: ["Authorization": "hidden"], body: .bytes([1]))
        var text = ""
        dump(request, to: &text)
        text += "\(request) \(String(reflecting: request))"
        #expect(!text.contains("hidden") && !text.contains("h.example"))
        let error = try await failure(as: TransferError.self) {
            _ = try await HTTPClient().send(patient("GET", "http://127.0.0.1:1/?token=hidden"))
        }
        #expect(error?.kind == .connect && error?.code == 7)
        #expect(error?.sentence == "no connection could be made: Connection refused")
        #expect(!"\(error as Any)".contains("hidden"))
    }

    @Test func `connections are kept and shared, and end when they are too old`() async throws {
        try await withServer(answering { _, connection in connection.answer("ok") }) { server, url in
            let client = HTTPClient()
            for number in 0..<20 {
                let response = try await client.send(patient("GET", url))
                #expect(response.head.wasReused == (number > 0))
            }
            #expect(server.accepted == 1)
            var young = HTTPClient.Configuration()
            young.loop.connectionLife = .seconds(1)
            let other = HTTPClient(young)
            _ = try await other.send(patient("GET", url))
            try await Task.sleep(for: .milliseconds(2100))
            #expect(try await other.send(patient("GET", url)).head.wasReused == false)
        }
    }

    @Test func `a closed client refuses, and what ran ends`() async throws {
        try await withServer {
            $0.waitForEnd()
        } _: { server, url in
            let client = HTTPClient()
            async let running = failure(as: TransferError.self) { _ = try await client.send(patient("GET", url)) }
            try await eventually("the request has connected") { server.accepted > 0 }
            client.close()
            let ended = try await running
            #expect(ended?.kind == .closed)
            let later = try await failure(as: TransferError.self) { _ = try await client.send(patient("GET", url)) }
            #expect(later?.kind == .closed && later?.outcomeIsUnknown == false)
        }
    }
}
