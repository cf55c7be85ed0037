import CommandKit
import Glibc
import LoadKit

/// An app's part of the gateway's HTTP, as far as proving needs it: one connection that stays open. Used by one thread at a time.
final class GatewayClient {
    struct Answer: Sendable {
        /// 0: the connection was lost before an answer was there.
        var status = 0
        var headers: [String: String] = [:]
        var body: [UInt8] = []

        var text: String { String(decoding: body, as: UTF8.self) }
        var json: JSONValue? { try? JSONValue.read(body) }
        var isGood: Bool { (200...299).contains(status) }
    }

    struct Event: Sendable, Equatable {
        var id: Int?
        var event = ""
        var data = ""
    }

    private let port: UInt16
    private let patience: Int
    /// Where it is, as a proxy would say it; nil: here.
    private let address: String?
    private var socket: Int32 = -1
    private var rest: [UInt8] = []

    /// - Parameter patience: how many seconds to wait for the next bytes of an answer.
    init(port: UInt16, patience: Int = 30, address: String? = nil) {
        self.port = port
        self.address = address
        self.patience = patience
    }

    deinit { hangUp() }

    func hangUp() {
        if socket >= 0 { close(socket) }
        socket = -1
        rest = []
    }

    /// One request. A connection that the server had closed meanwhile is opened again, once.
    func send(
        _ method: String, _ path: String, token: String? = nil, headers: [(String, String)] = [], body: String? = nil
    ) -> Answer {
        let all = headers + (address.map { [("X-Forwarded-For", $0)] } ?? [])
        let bytes = Array(Self.request(method, path, token: token, headers: all, body: body).utf8)
        for isFirst in [true, false] {
            let isOld = socket >= 0
            guard isOld || open() else { return Answer() }
            if write(bytes), let answer = read(hasBody: method != "HEAD") { return answer }
            hangUp()
            if !isOld || !isFirst || method != "GET" && !rest.isEmpty { return Answer() }
        }
        return Answer()
    }

    func call(
        _ function: String, _ args: JSONValue = [:], token: String, headers: [(String, String)] = []
    ) -> Answer {
        send("POST", "/v1/rpc/\(function)", token: token, headers: headers, body: args.compact)
    }

    static func request(
        _ method: String, _ path: String, token: String?, headers: [(String, String)] = [], body: String? = nil
    ) -> String {
        var text = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n"
        if let token {
            let isScheme = token.hasPrefix("Bearer ") || token.hasPrefix("Device ")
            text += "Authorization: \(isScheme ? token : "Bearer \(token)")\r\n"
        }
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        if let body {
            if !headers.contains(where: { $0.0 == "Content-Type" }) { text += "Content-Type: application/json\r\n" }
            text += "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        }
        return body == nil ? text + "\r\n" : text
    }

    /// Any bytes, on a connection of their own; nil when it was closed without an answer.
    static func raw(_ bytes: [UInt8], port: UInt16, patience: Int = 5) -> Answer? {
        let client = GatewayClient(port: port, patience: patience)
        guard client.open(), client.write(bytes) else { return nil }
        shutdown(client.socket, Int32(SHUT_WR))
        return client.read(hasBody: !bytes.starts(with: Array("HEAD".utf8)))
    }

    /// Reads a stream on a connection of its own until the body says that it is enough, the stream ends, or nothing comes.
    /// - Returns: the status, and all that was read.
    static func stream(
        _ path: String, token: String, headers: [(String, String)] = [], port: UInt16, patience: Int = 10,
        until enough: ([Event]) -> Bool
    ) -> (answer: Answer, events: [Event]) {
        // A busy gateway may be late with its first line: only what comes after it is waited for so briefly.
        let client = GatewayClient(port: port)
        let all = headers + [("Accept", "text/event-stream")]
        guard client.open(), client.write(Array(request("GET", path, token: token, headers: all).utf8)),
            var answer = client.head()
        else { return (Answer(), []) }
        guard answer.status == 200 else { return (client.body(of: answer) ?? answer, []) }
        client.wait(seconds: patience)
        let isChunked = answer.headers["transfer-encoding"]?.lowercased() == "chunked"
        var parser = EventParser()
        while !enough(parser.events) {
            if isChunked {
                guard let chunk = client.chunk(), !chunk.isEmpty else { break }
                answer.body += chunk
                parser.take(chunk)
            } else {
                guard client.more() else { break }
                answer.body += client.rest
                parser.take(client.rest)
                client.rest = []
            }
        }
        return (answer, parser.events)
    }

    // MARK: sockets

    private func open() -> Bool {
        guard let client = Loopback.connection(to: port) else { return false }
        socket = client
        wait(seconds: patience)
        rest = []
        return true
    }

    /// How long to wait for the next bytes.
    private func wait(seconds: Int) {
        var wait = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
    }

    private func write(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.send(socket, buffer.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    private func more() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        let count = recv(socket, &buffer, buffer.count, 0)
        guard count > 0 else { return false }
        rest += buffer[..<count]
        return true
    }

    private func take(_ count: Int) -> [UInt8]? {
        while rest.count < count { guard more() else { return nil } }
        defer { rest.removeFirst(count) }
        return Array(rest[..<count])
    }

    private func line() -> String? {
        while true {
            if let end = rest.firstRange(of: [13, 10]) {
                defer { rest.removeFirst(end.upperBound) }
                return String(decoding: rest[..<end.lowerBound], as: UTF8.self)
            }
            guard more() else { return nil }
        }
    }

    private func chunk() -> [UInt8]? {
        guard let size = line().flatMap({ Int($0.prefix { $0 != ";" }, radix: 16) }) else { return nil }
        guard let bytes = take(size), take(2) != nil else { return nil }
        return bytes
    }

    private func head() -> Answer? {
        guard let first = line() else { return nil }
        let words = first.split(separator: " ", maxSplits: 2)
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else { return nil }
        var answer = Answer(status: status)
        while let next = line() {
            if next.isEmpty { return answer }
            guard let colon = next.firstIndex(of: ":") else { return nil }
            answer.headers[next[..<colon].lowercased()] = String(
                next[next.index(after: colon)...].drop { $0 == " " })
        }
        return nil
    }

    private func body(of given: Answer, hasBody: Bool = true) -> Answer? {
        var answer = given
        if !hasBody || answer.status == 204 || answer.status == 304 {
            return answer
        } else if answer.headers["transfer-encoding"]?.lowercased() == "chunked" {
            while let chunk = chunk() {
                if chunk.isEmpty { return answer }
                answer.body += chunk
            }
            return nil
        } else if let size = answer.headers["content-length"].flatMap({ Int($0) }) {
            guard let bytes = take(size) else { return nil }
            answer.body = bytes
            return answer
        }
        while more() {}
        answer.body = rest
        rest = []
        return answer
    }

    private func read(hasBody: Bool) -> Answer? {
        guard var given = head() else { return nil }
        while (100...199).contains(given.status) {
            guard let next = head() else { return nil }
            given = next
        }
        guard let answer = body(of: given, hasBody: hasBody) else { return nil }
        if answer.headers["connection"]?.lowercased() == "close" { hangUp() }
        return answer
    }
}

/// Server-sent events from pieces of any size.
struct EventParser {
    private(set) var events: [GatewayClient.Event] = []
    private var rest: [UInt8] = []
    private var next = GatewayClient.Event()

    mutating func take(_ bytes: [UInt8]) {
        rest += bytes
        while let end = rest.firstIndex(of: 10) {
            let line = String(decoding: rest[..<end], as: UTF8.self)
            rest.removeFirst(end + 1)
            if line.isEmpty {
                if !next.data.isEmpty || !next.event.isEmpty { events.append(next) }
                next = GatewayClient.Event()
            } else if let colon = line.firstIndex(of: ":"), colon > line.startIndex {
                let value = String(line[line.index(after: colon)...].drop { $0 == " " })
                switch line[..<colon] {
                case "id": next.id = Int(value)
                case "event": next.event = value
                case "data": next.data += next.data.isEmpty ? value : "\n" + value
                default: break
                }
            }
        }
    }
}
