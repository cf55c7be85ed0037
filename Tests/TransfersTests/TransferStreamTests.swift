import Fakes
import TestSupport
import Testing

@testable import Transfers

@Suite struct TransferStreamTests {
    @Test func `a reader that stands still holds the sender up, and then gets everything`() async throws {
        let total = 32 << 20
        let written = Locked(0)
        try await withServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
            let piece = [UInt8](repeating: 7, count: 1 << 16)
            for _ in 0..<(total / piece.count) {
                guard connection.write(piece) else { return }
                written.withLock { $0 += piece.count }
            }
            connection.waitForEnd()
        } _: { _, url in
            var request = patient("GET", url)
            request.limits.bodyBytes = total
            let count = try await HTTPClient().stream(request) { head, body in
                #expect(head.status == 200)
                // The sender comes to a stop when all buffers between are full.
                var last = -1
                while written.withLock({ $0 }) != last {
                    last = written.withLock { $0 }
                    try await Task.sleep(for: .milliseconds(300))
                }
                #expect(last < total / 2)
                var count = 0
                while let bytes = try await body.next() {
                    #expect(bytes.first == 7 && bytes.last == 7)
                    count += bytes.count
                }
                return count
            }
            #expect(count == total)
        }
    }

    @Test func `a child that is started meanwhile holds no connection open`() async throws {
        let ended = Locked(false)
        try await withServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort")
            connection.waitForEnd()
            ended.withLock { $0 = true }
        } _: { _, url in
            let child = try await HTTPClient().stream(patient("GET", url)) { _, body in
                _ = try await body.next()
                return try start("sleep", ["600"])
            }
            defer { end(child) }
            try await eventually("the server notices") { ended.withLock { $0 } }
        }
    }

    @Test func `leaving early ends the transfer`() async throws {
        let ended = Locked(false)
        try await withServer { connection in
            _ = connection.readHead()
            connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while connection.write("4\r\nmore\r\n") { pause(milliseconds: 1) }
            ended.withLock { $0 = true }
        } _: { _, url in
            let first = try await HTTPClient().stream(patient("GET", url)) { _, body in try await body.next() }
            #expect(first?.isEmpty == false)
            try await eventually("the server notices") { ended.withLock { $0 } }
        }
    }

    @Test(arguments: [true, false])
    func `a body from a source arrives whole, and the source waits for the receiver`(_ saysLength: Bool) async throws {
        let pieces = 512
        let size = 64 << 10
        let received = Locked(0)
        let mayRead = Locked(false)
        try await withServer { connection in
            guard let head = connection.readHead() else { return }
            #expect(head.contains(saysLength ? "Content-Length: \(pieces * size)" : "Transfer-Encoding: chunked"))
            while !mayRead.withLock({ $0 }) { pause(milliseconds: 2) }
            var last: [UInt8] = []
            var count = 0
            while !saysLength || count < pieces * size, let bytes = connection.read() {
                count += bytes.count
                last = last.suffix(8) + bytes.suffix(8)
                if !saysLength, last.suffix(7) == Array("\r\n0\r\n\r\n".utf8).suffix(7) { break }
            }
            received.withLock { $0 = count }
            connection.answer("thanks")
        } _: { _, url in
            let given = Locked(0)
            let body = HTTPRequest.Body.stream(length: saysLength ? pieces * size : nil) {
                let index = given.withLock { given in
                    given += 1
                    return given
                }
                return index > pieces ? nil : [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: size)
            }
            let client = HTTPClient()
            var request = patient("PUT", url, body: body)
            request.limits.stall = nil
            let sending = Task { [request] in try await client.send(request) }
            var last = -1
            while given.withLock({ $0 }) != last {
                last = given.withLock { $0 }
                try await Task.sleep(for: .milliseconds(300))
            }
            #expect(last < pieces / 2)
            mayRead.withLock { $0 = true }
            let response = try await sending.value
            #expect(response.text == "thanks")
            #expect(received.withLock { $0 } >= pieces * size)
        }
    }

    @Test func `a source that fails or miscounts ends the request`() async throws {
        try await withServer { connection in
            connection.waitForEnd()
        } _: { _, url in
            struct Broken: Error {}
            let client = HTTPClient()
            let calls = Locked(0)
            let bodies: [HTTPRequest.Body] = [
                .stream(length: nil) { throw Broken() },
                .stream(length: 10) {
                    calls.withLock { calls in
                        calls += 1
                        return calls > 1 ? nil : [1, 2, 3]
                    }
                },
                .stream(length: 2) { [1, 2, 3] },
            ]
            for body in bodies {
                let error = try await failure(as: TransferError.self) {
                    _ = try await client.send(patient("PUT", url, body: body))
                }
                #expect(error?.kind == .source)
            }
        }
    }

    @Test func `an answer that comes before the body is read ends the source`() async throws {
        try await withServer { connection in
            _ = connection.readHead()
            connection.answer("no", status: "413 Too Large", headers: "Connection: close\r\n")
        } _: { _, url in
            // A source that never has anything: only its cancellation ends it.
            let body = HTTPRequest.Body.stream(length: nil) {
                try await Task.sleep(for: .seconds(3600))
                return [1]
            }
            let response = try await HTTPClient().send(patient("PUT", url, body: body))
            #expect(response.status == 413)
        }
    }
}
