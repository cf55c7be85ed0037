import Foundation
import Glibc
import TestSupport
import Threads

/// Reads server-sent events from a plain socket.
actor EventReader {
    struct Event: Sendable {
        var id = ""
        var name = ""
        var data = ""

        var texts: [String: String] {
            (try? JSONDecoder().decode([String: String].self, from: Data(data.utf8))) ?? [:]
        }
    }

    private let end: Int32
    private var unread: [UInt8] = []
    private var isOver = false

    init(
        _ world: ConsoleWorld, topic: String = "fleet", after id: String? = nil, cookie: String? = nil,
        at base: String = "/console"
    ) throws {
        end = try LocalSocket.connect(to: world.port)
        let text =
            "GET \(base)/live?topic=\(topic) HTTP/1.1\r\nHost: \(world.host)\r\nAccept: text/event-stream\r\nConnection: close\r\n"
            + (id.map { "Last-Event-ID: \($0)\r\n" } ?? "") + (cookie.map { "Cookie: \($0)\r\n" } ?? "") + "\r\n"
        let bytes = Array(text.utf8)
        _ = Glibc.send(end, bytes, bytes.count, Int32(truncatingIfNeeded: MSG_NOSIGNAL))
    }

    deinit { Glibc.close(end) }

    /// The next event with a name; nil when the other side has closed.
    func next() async -> Event? {
        while true {
            if let event = take() {
                if !event.name.isEmpty { return event }
                continue
            }
            guard !isOver else { return nil }
            let end = end
            let more = await Thread.run(name: "events") { () -> [UInt8] in
                var chunk = [UInt8](repeating: 0, count: 16_384)
                let count = recv(end, &chunk, chunk.count, 0)
                return Array(chunk.prefix(max(0, count)))
            }
            if more.isEmpty { isOver = true } else { unread += more }
        }
    }

    /// The next event in which `name` has a text.
    func next(with name: String) async -> Event? {
        while let event = await next() {
            if event.texts[name] != nil { return event }
        }
        return nil
    }

    /// One block that ends with an empty line; the pieces of the transfer stand around it.
    private func take() -> Event? {
        let text = String(decoding: unread, as: UTF8.self).replacing("\r\n", with: "\n")
        guard let range = text.range(of: "\n\n") else { return nil }
        var event = Event()
        for line in text[..<range.lowerBound].split(separator: "\n") {
            if line.hasPrefix("id: ") { event.id = String(line.dropFirst(4)) }
            if line.hasPrefix("event: ") { event.name = String(line.dropFirst(7)) }
            if line.hasPrefix("data: ") { event.data = String(line.dropFirst(6)) }
        }
        unread = Array(text[range.upperBound...].utf8)
        return event
    }
}
