import Listeners
import TestSupport
import Testing
import Threads

/// Answers without an end, which others write to.
@Suite struct StreamedTests {
    private final class Stream: Sendable {
        let writer = Locked<BodyWriter?>(nil)
        let ended = Wakeup()
        let isOver = Locked(false)

        var route: Route {
            Route(.get, "/stream", access: .everyone) { request in
                let size = request.headers["X-Large"]?.utf8.count ?? 0
                return Response(
                    body: .stream { [self] writer in
                        try await writer.write(Array("head \(size);".utf8))
                        writer.whenClosing { [self] in ended.fire() }
                        self.writer.withLock { $0 = writer }
                        await ended.wait()
                        isOver.withLock { $0 = true }
                    })
            }
        }

        func push(_ text: String, pieces: Int = 10, bytes: Int = 1000) -> Bool {
            writer.value?.push(Array(text.utf8), pieces: pieces, bytes: bytes) ?? false
        }
    }

    @Test func `a piece is there at once, and one too many is refused`() async throws {
        let stream = Stream()
        try await withListener([stream.route]) { listener in
            let wire = try Wire(to: listener.address.port)
            wire.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
            _ = try await wire.read(until: "head 0;")
            try await eventually("it can be written to") { stream.writer.value != nil }
            for number in 0..<50 {
                #expect(stream.push("piece \(number);"))
                _ = try await wire.read(until: "piece \(number);")
            }
            #expect(!stream.push("none", pieces: 0) && !stream.push("too long", bytes: 3))
            #expect(stream.push("last;"))
            _ = try await wire.read(until: "last;")
            stream.ended.fire()
            _ = try await wire.read(until: "0\r\n\r\n")
            try await eventually("nothing is taken after the end") { !stream.push("late") }
        }
    }

    @Test func `a client that does not read fills its share, and is cut although it does not read`() async throws {
        let stream = Stream()
        try await withListener([stream.route]) { listener in
            let wire = try Wire(to: listener.address.port)
            wire.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
            try await eventually("it can be written to") { stream.writer.value != nil }
            let large = String(repeating: "x", count: 100_000)
            try await eventually("no more fits") { !stream.push(large, pieces: 4, bytes: 400_000) }
            stream.writer.value?.cut()
            try await eventually("the handler knows") { stream.isOver.value }
            try await eventually("the connection is closed") { listener.counts.connections == 0 }
            #expect(listener.counts.broken == 1)
            withExtendedLifetime(wire) {}
        }
    }

    @Test func `a listener that stops tells its streams`() async throws {
        let stream = Stream()
        let wire = Locked<Wire?>(nil)
        try await withListener([stream.route], change: { $0.grace = .seconds(300) }) { listener in
            let made = try Wire(to: listener.address.port)
            made.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
            try await eventually("it can be written to") { stream.writer.value != nil }
            wire.withLock { $0 = made }
        }
        #expect(stream.isOver.value)
        #expect(try await wire.value?.readToEnd().hasSuffix("0\r\n\r\n") == true)
    }

    @Test func `half of the memory is enough for the largest head`() async throws {
        let stream = Stream()
        try await withListener([stream.route], change: { $0.connectionMemory = 32_768 }) { listener in
            let wire = try Wire(to: listener.address.port)
            let large = String(repeating: "x", count: 15_500)
            wire.send("GET /stream HTTP/1.1\r\nHost: a\r\nX-Large: \(large)\r\n\r\n")
            _ = try await wire.read(until: "head 15500;")
            try await eventually("it can be written to") { stream.writer.value != nil }
            #expect(stream.push("more;"))
            _ = try await wire.read(until: "more;")
            stream.ended.fire()
            _ = try await wire.read(until: "0\r\n\r\n")
        }
    }
}
