import Fakes
import TestSupport
import Testing

import enum TestSupport.Program

@testable import Transfers

/// Servers that misbehave, each in its own way, and what is said about it.
@Suite struct BadServerTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let kind: TransferError.Kind
        let stage: TransferError.Stage
        let serve: @Sendable (RawConnection) -> Void

        init(
            _ what: String, _ kind: TransferError.Kind, _ stage: TransferError.Stage,
            _ serve: @escaping @Sendable (RawConnection) -> Void
        ) {
            testDescription = what
            self.kind = kind
            self.stage = stage
            self.serve = serve
        }
    }

    static let cases = [
        Case("silence", .timedOut(.total), .sent) { $0.waitForEnd() },
        Case("a head that never ends", .tooLarge, .answered) { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\n")
            while connection.write("X-Filler: \(String(repeating: "x", count: 1000))\r\n") {}
        },
        Case("informational answers without end", .tooLarge, .sent) { connection in
            _ = connection.readHead()
            while connection.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") {}
        },
        Case("a body without end", .tooLarge, .answered) { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while connection.write("400\r\n\(String(repeating: "x", count: 1024))\r\n") {}
        },
        Case("a length beyond the limit", .tooLarge, .answered) { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
            connection.waitForEnd()
        },
        Case("a body cut short", .dropped, .answered) { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")
        },
        Case("chunks cut short", .dropped, .answered) { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nshort")
        },
        Case("an end instead of an answer", .dropped, .sent) { _ = $0.readHead() },
        Case("a reset instead of an answer", .dropped, .sent) { connection in
            _ = connection.readHead()
            connection.reset()
        },
        Case("no HTTP at all", .malformed, .sent) { connection in
            _ = connection.readHead()
            connection.write("220 mail.example ESMTP\r\n")
            connection.waitForEnd()
        },
        Case("a head cut short", .dropped, .answered) { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nX-A: ")
        },
        Case("a body that stands still", .timedOut(.stall), .answered) { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")
            connection.waitForEnd()
        },
    ]

    @Test(arguments: cases)
    func `each misbehaviour has its name and says how far the request came`(_ one: Case) async throws {
        try await withServer(one.serve) { _, url in
            let client = HTTPClient()
            var request = patient("POST", url, body: .bytes([1]))
            request.limits.bodyBytes = 1 << 20
            request.limits.total = .seconds(one.kind == .timedOut(.total) ? 1 : 60)
            request.limits.stall = .seconds(one.kind == .timedOut(.stall) ? 1 : 50)
            let error = try await failure(as: TransferError.self) { _ = try await client.send(request) }
            #expect(error?.kind == one.kind)
            #expect(error?.stage == one.stage)
            #expect(error?.outcomeIsUnknown == true)
            let streamed = try await failure(as: TransferError.self) {
                try await client.stream(request) { _, body in
                    while try await body.next() != nil {}
                }
            }
            #expect(streamed == error)
        }
    }

    @Test func `a slow drip is ended by the whole time, not kept alive by its bytes`() async throws {
        try await withServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while connection.write("x") { pause(milliseconds: 20) }
        } _: { _, url in
            var request = patient("GET", url)
            request.limits.total = .milliseconds(1500)
            request.limits.stall = .seconds(60)
            let error = try await failure(as: TransferError.self) { _ = try await HTTPClient().send(request) }
            #expect(error?.kind == .timedOut(.total) && error?.stage == .answered)
        }
    }

    @Test func `informational answers are passed over`() async throws {
        try await withServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
            connection.answer("final")
        } _: { _, url in
            let response = try await HTTPClient().send(patient("GET", url))
            #expect(response.status == 200 && response.text == "final")
            #expect(!response.headers.contains("X-Early"))
        }
    }

    @Test func `a connection that cannot be made leaves nothing sent`() async throws {
        // An address for documentation: nothing answers, or the system says at once that there is no way.
        var request = HTTPRequest("POST", "http://192.0.2.1/", body: .bytes([1]))
        request.limits.connect = .milliseconds(300)
        let error = try await failure(as: TransferError.self) { _ = try await HTTPClient().send(request) }
        #expect(error?.kind == .timedOut(.connect) || error?.kind == .connect)
        #expect(error?.outcomeIsUnknown == false)
        let unknown = try await failure(as: TransferError.self) {
            _ = try await HTTPClient().send(HTTPRequest("GET", "http://no-such-host.invalid/"))
        }
        #expect(unknown?.kind == .resolve && unknown?.stage == .unsent && unknown?.code == 6)
    }

    /// The server takes the second request of a kept connection and dies without a word.
    private static let diesOnSecond: @Sendable (RawConnection) -> Void = { connection in
        guard connection.readHead() != nil else { return }
        connection.answer("first")
        _ = connection.readHead()
    }

    @Test func `what must not happen twice is not sent twice when a kept connection dies`() async throws {
        try await withServer(Self.diesOnSecond) { server, url in
            let client = HTTPClient()
            let first = try await client.send(patient("POST", url))
            #expect(first.status == 200)
            let error = try await failure(as: TransferError.self) { _ = try await client.send(patient("POST", url)) }
            #expect(error?.kind == .dropped && error?.outcomeIsUnknown == true)
        }
    }

    @Test func `what may happen twice is sent again on a fresh connection`() async throws {
        try await withServer(Self.diesOnSecond) { server, url in
            let client = HTTPClient()
            for _ in 0..<2 {
                let response = try await client.send(patient("POST", url, headers: ["Idempotency-Key": "k"]))
                #expect(response.text == "first")
            }
            #expect(server.accepted == 2)
        }
    }

    @Test func `what unpacks to more than is allowed is ended`() async throws {
        let directory = try temporaryDirectory()
        try await Program.check("sh", ["-c", "head -c 50000000 /dev/zero | gzip -9 > \(directory)/bomb.gz"])
        try await Program.check("sh", ["-c", "printf hello | gzip > \(directory)/small.gz"])
        let bomb = try bytes(of: "\(directory)/bomb.gz")
        let small = try bytes(of: "\(directory)/small.gz")
        #expect(bomb.count < 100_000)
        try await withServer(
            answering { head, connection in
                let body = head.contains("/bomb") ? bomb : small
                return connection.write(
                    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(body.count)\r\n\r\n")
                    && connection.write(body)
            }
        ) { _, url in
            let client = HTTPClient()
            var request = HTTPRequest("GET", "\(url)/bomb")
            request.decompresses = true
            request.limits.bodyBytes = 1_000_000
            let error = try await failure(as: TransferError.self) { _ = try await client.send(request) }
            #expect(error?.kind == .tooLarge)
            request.url = "\(url)/small"
            let unpacked = try await client.send(request)
            #expect(unpacked.text == "hello")
            request.decompresses = false
            let packed = try await client.send(request)
            #expect(packed.body == small)
        }
    }
}
