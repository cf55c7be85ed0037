import Foundation
import Glibc
import Threads

/// One request over a plain socket, as no browser would send it, and what came back until the other side closed.
struct RawAnswer: Sendable {
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    let status: Int
    let head: String
    let body: String

    func header(_ name: String) -> String? {
        for line in head.split(separator: "\r\n").dropFirst() {
            let halves = line.split(separator: ":", maxSplits: 1)
            if halves.count == 2, halves[0].lowercased() == name.lowercased() {
                return halves[1].trimmingCharacters(in: .whitespaces)
            }
        }
        return nil
    }

    static func get(_ path: String, host: String, _ headers: [(String, String)] = [], port: UInt16) async throws
        -> RawAnswer
    {
        try await ask("GET \(path) HTTP/1.1", host: host, headers, port: port)
    }

    static func ask(
        _ line: String, host: String?, _ headers: [(String, String)] = [], body: String = "", port: UInt16
    ) async throws -> RawAnswer {
        let all = (host.map { [("Host", $0)] } ?? []) + [("Connection", "close")] + headers
        let text = line + "\r\n" + all.map { "\($0.0): \($0.1)\r\n" }.joined() + "\r\n" + body
        return try await Thread.run(name: "raw-request") { Result { try exchange(text, port: port) } }.get()
    }

    private static func exchange(_ text: String, port: UInt16) throws -> RawAnswer {
        let end = try open(port)
        defer { close(end) }
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    end, $0.baseAddress?.advanced(by: sent), bytes.count - sent, Int32(truncatingIfNeeded: MSG_NOSIGNAL)
                )
            }
            // It may refuse the rest before it has read it.
            guard count > 0 else { break }
            sent += count
        }
        var answer: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(end, &chunk, chunk.count, 0)
            guard count > 0 else { break }
            answer += chunk.prefix(count)
        }
        return try parsed(String(decoding: answer, as: UTF8.self))
    }

    private static func parsed(_ text: String) throws -> RawAnswer {
        let halves = text.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
        let words = text.prefix(40).split(separator: " ")
        guard words.count > 1, let status = Int(words[1]) else {
            return RawAnswer(status: 0, head: text, body: "")
        }
        return RawAnswer(
            status: status, head: String(halves[0]), body: halves.count > 1 ? String(halves[1]) : "")
    }

    static func open(_ port: UInt16) throws -> Int32 {
        let end = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
        var patience = timeval(tv_sec: 120, tv_usec: 0)
        setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(end, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else {
            close(end)
            throw Failed(description: "nobody listens on \(port)")
        }
        return end
    }
}
