import Foundation
import Listeners
import Synchronization
import TestSupport
import Testing

@Suite struct BodyTests {
    private static let echo = Route(.post, "/echo", access: .everyone, limit: 1_000_000) { request in
        Response(body: .bytes(try await request.body.collect()))
    }

    /// curl's own words about a request: its output, and its exit code.
    private func curl(_ arguments: String..., input: Data = Data()) async throws -> Program.Outcome {
        try await Program.run(
            "curl", ["--silent", "--show-error", "--max-time", "600"] + arguments, input: input)
    }

    @Test(arguments: [0, 1, 1000, 65_536, 1_000_000]) func `bytes come back as they were sent`(_ size: Int) async throws
    {
        try await withListener([Self.echo]) { listener in
            let body = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
            let url = "http://\(listener.address)/echo"
            let whole = try await curl("--data-binary", "@-", url, input: body)
            #expect(whole.status == 0 && whole.output == body)
            let pieces = try await curl("-H", "Transfer-Encoding: chunked", "--data-binary", "@-", url, input: body)
            #expect(pieces.status == 0 && pieces.output == body)
        }
    }

    @Test func `a body over the limit is refused, said beforehand or not`() async throws {
        try await withListener([Self.echo]) { listener in
            let url = "http://\(listener.address)/echo"
            let said = try await ask(
                listener, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000001\r\nExpect: 100-continue\r\n\r\n")
            #expect(said.hasPrefix("HTTP/1.1 413") && said.contains(#""error":"too_large""#))
            #expect(!said.contains("100 Continue"))
            let body = Data(count: 1_000_001)
            let unsaid = try await curl(
                "-H", "Transfer-Encoding: chunked", "--data-binary", "@-", "-w", "%{http_code}", url, input: body)
            #expect(String(decoding: unsaid.output, as: UTF8.self).hasSuffix("413"))
        }
    }

    @Test func `who does not read holds up the sender`() async throws {
        let gate = Gate()
        let route = Route(.post, "/slow", access: .everyone, limit: 64_000_000) { request in
            try await gate.pass()
            var count = 0
            for try await chunk in request.body { count += chunk.count }
            return .text("\(count)")
        }
        try await withListener([route]) { listener in
            let wire = try Wire(to: listener.address.port)
            wire.send("POST /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 32000000\r\n\r\n")
            let piece = String(repeating: "x", count: 100_000)
            var sent = 0
            var idle = 0
            // Full when nothing has gone for a while: then the kernel's buffers are all there is.
            while idle < 100 {
                let count = wire.send(String(piece.prefix(32_000_000 - sent)))
                if count > 0 {
                    sent += count
                    idle = 0
                } else {
                    idle += 1
                    try await Task.sleep(for: .milliseconds(5))
                }
            }
            #expect(sent < 16_000_000, "the kernel holds a few megabytes at most")
            gate.open()
            try await eventually("the rest has gone") {
                sent += max(wire.send(String(piece.prefix(32_000_000 - sent))), 0)
                return sent == 32_000_000
            }
            #expect(try await wire.readToEnd().hasSuffix("32000000"))
        }
    }

    @Test func `a stream goes on as long as its handler writes, and ends when the client goes`() async throws {
        let ended = Mutex<String?>(nil)
        let route = Route(.get, "/events", access: .everyone) { _ in
            Response(
                headers: [Header("Content-Type", "text/event-stream")],
                body: .stream { writer in
                    do {
                        for number in 1... {
                            try await writer.write(Array("data: \(number)\n\n".utf8))
                            try await Task.sleep(for: .milliseconds(20))
                        }
                    } catch {
                        ended.withLock { $0 = "\(error)" }
                        throw error
                    }
                })
        }
        try await withListener([route]) { listener in
            do {
                let wire = try Wire(to: listener.address.port)
                wire.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
                _ = try await wire.read(until: "data: 3\n\n")
                #expect(ended.withLock { $0 } == nil)
            }
            try await eventually("the handler is cancelled") { ended.withLock { $0 }?.contains("Cancellation") == true }
        }
    }

    @Test func `a handler whose client has gone is cancelled`() async throws {
        let state = Mutex("")
        let route = Route(.get, "/wait", access: .everyone) { _ in
            state.withLock { $0 = "began" }
            do { try await Task.sleep(for: .seconds(600)) } catch { state.withLock { $0 = "cancelled" } }
            return .text("late")
        }
        try await withListener([route]) { listener in
            do {
                let wire = try Wire(to: listener.address.port)
                wire.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
                try await eventually("it has begun") { state.withLock { $0 } == "began" }
            }
            try await eventually("it is cancelled") { state.withLock { $0 } == "cancelled" }
        }
    }

    @Test func `a slow reader gets all of a large stream, and the handler waits for it`() async throws {
        let written = Mutex(0)
        let route = Route(.get, "/large", access: .everyone) { _ in
            Response(
                body: .stream { writer in
                    for _ in 0..<320 {
                        try await writer.write([UInt8](repeating: 120, count: 100_000))
                        written.withLock { $0 += 100_000 }
                    }
                })
        }
        try await withListener([route]) { listener in
            let wire = try Wire(to: listener.address.port)
            wire.send("GET /large HTTP/1.0\r\n\r\n")
            var before = -1
            var still = 0
            while still < 50 {
                try await Task.sleep(for: .milliseconds(5))
                let now = written.withLock { $0 }
                still = now == before ? still + 1 : 0
                before = now
            }
            #expect(before < 20_000_000)
            let text = try await wire.readToEnd()
            #expect(text.utf8.count > 32_000_000 && written.withLock { $0 } == 32_000_000)
        }
    }

    @Test func `a file is sent from where it was asked`() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "listener-\(UUID().uuidString)").path
        try Data("0123456789".utf8).write(to: URL(filePath: path))
        defer { unlink(path) }
        let route = Route(.get, "/file", access: .everyone) { _ in
            Response(body: .file(descriptor: open(path, O_RDONLY | O_CLOEXEC), offset: 3, count: 4))
        }
        try await withListener([route]) { listener in
            for _ in 0..<3 {
                let answer = try await get(listener, "/file")
                #expect(answer.hasSuffix("\r\n\r\n3456"))
            }
        }
    }
}
