import CommandKit
import Glibc
import Synchronization
import Threads

/// A minimal server on 127.0.0.1, for scenarios that need their own.
package enum Loopback {
    /// A thread for each connection, which is closed when it has been served.
    package final class Server: Sendable {
        package let port: UInt16
        private let listener: Int32
        private let isStopping = Mutex(false)

        package init() throws {
            (listener, port) = try Loopback.listen()
        }

        package func start(_ name: String, _ serve: @escaping @Sendable (Int32) -> Void) {
            Thread.start(name: "\(name)s") { [self] in
                while true {
                    let client = Glibc.accept(listener, nil, nil)
                    if client < 0 {
                        if isStopping.withLock({ $0 }) { return }
                        usleep(1000)
                        continue
                    }
                    Thread.start(name: name) {
                        serve(client)
                        close(client)
                    }
                }
            }
        }

        package func stop() {
            isStopping.withLock { $0 = true }
            shutdown(listener, Int32(SHUT_RDWR))
            close(listener)
        }
    }

    private static func listen() throws -> (socket: Int32, port: UInt16) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, length) == 0 && Glibc.listen(listener, 512) == 0
                    && getsockname(listener, pointer, &length) == 0
            }
        }
        guard listener >= 0, bound else { throw Failure("there is no port on loopback") }
        return (listener, UInt16(bigEndian: address.sin_port))
    }

    /// One that nobody listened at a moment ago.
    package static func freePort() throws -> UInt16 {
        let (socket, port) = try listen()
        close(socket)
        return port
    }

    /// nil: nobody listens there.
    package static func connection(to port: UInt16) -> Int32? {
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard client >= 0 else { return nil }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                connect(client, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else {
            close(client)
            return nil
        }
        var one: Int32 = 1
        setsockopt(client, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        return client
    }

    /// nil when the other side went away, or speaks something else.
    package static func request(from client: Int32) -> (path: String, body: [UInt8])? {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 8192)
        var whole: (head: Int, length: Int)?
        while true {
            if whole == nil, let end = bytes.firstRange(of: [13, 10, 13, 10]) {
                let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).lowercased()
                let length =
                    head.split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
                    .flatMap { Int($0.dropFirst(15).drop { $0 == " " }) } ?? 0
                whole = (end.upperBound, length)
            }
            if let whole, bytes.count >= whole.head + whole.length {
                let words = String(decoding: bytes[..<whole.head], as: UTF8.self).split(separator: " ", maxSplits: 2)
                guard words.count == 3 else { return nil }
                return (String(words[1]), Array(bytes[whole.head..<(whole.head + whole.length)]))
            }
            let count = recv(client, &chunk, chunk.count, 0)
            guard count > 0, bytes.count < 1 << 20 else { return nil }
            bytes += chunk[..<count]
        }
    }

    /// All that the other side says until it closes, or says nothing for as long as this side waits.
    package static func heard(from client: Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while case let count = recv(client, &chunk, chunk.count, 0), count > 0 { bytes += chunk[..<count] }
        return bytes
    }

    package static func answer(_ client: Int32, _ status: String, _ body: String, type: String = "application/json") {
        let text =
            "HTTP/1.1 \(status)\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n"
            + "Connection: close\r\n\r\n\(body)"
        let bytes = Array(text.utf8)
        _ = send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
}
