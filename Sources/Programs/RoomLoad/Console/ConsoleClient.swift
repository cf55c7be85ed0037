import Glibc
import LoadKit
import Synchronization
import Threads

/// A browser's part of the console's HTTP, as far as measuring needs it.
enum ConsoleClient {
    struct Answer: Sendable {
        var status = 0
        var body = ""
        var ms = 0.0
    }

    /// One page, on a connection of its own.
    static func get(_ path: String, port: UInt16) -> Answer {
        let began = ContinuousClock.now
        guard let client = Loopback.connection(to: port) else { return Answer(body: "nobody listens") }
        defer { close(client) }
        send("GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", on: client)
        let text = String(decoding: Loopback.heard(from: client), as: UTF8.self)
        let status = text.split(separator: " ", maxSplits: 2).dropFirst().first.flatMap { Int($0) } ?? 0
        return Answer(status: status, body: text, ms: began.duration(to: .now) / .milliseconds(1))
    }

    /// Open live pages, read by one thread.
    final class Streams: Sendable {
        private let isOver = Atomic(false)
        private let events = Atomic(0)
        private let ended = Atomic(false)

        fileprivate init(_ count: Int, port: UInt16) {
            let clients = (0..<count).compactMap { _ in Loopback.connection(to: port) }
            for client in clients {
                ConsoleClient.send(
                    "GET /console/live?topic=fleet HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n",
                    on: client)
            }
            Thread.start(name: "console-streams") { [self] in read(clients) }
        }

        private func read(_ clients: [Int32]) {
            var polls = clients.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while !isOver.load(ordering: .relaxed) {
                guard poll(&polls, nfds_t(polls.count), 200) > 0 else { continue }
                for place in polls.indices where polls[place].revents != 0 {
                    let count = recv(polls[place].fd, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                    if count > 0 {
                        events.add(1, ordering: .relaxed)
                    } else if count == 0 {
                        polls[place].fd = -1
                    }
                }
            }
            for client in clients { close(client) }
            ended.store(true, ordering: .releasing)
        }

        /// How many events came.
        func stop() -> Int {
            isOver.store(true, ordering: .relaxed)
            while !ended.load(ordering: .acquiring) { usleep(10_000) }
            return events.load(ordering: .relaxed)
        }
    }

    static func stream(_ count: Int, port: UInt16) -> Streams { Streams(count, port: port) }

    private static func send(_ text: String, on client: Int32) {
        let bytes = Array(text.utf8)
        _ = Glibc.send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
}
