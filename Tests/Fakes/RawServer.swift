import Glibc
import Synchronization
import Threads

/// A server on this machine that does whatever a test's closure does with the bare connection, on a thread for each.
package final class RawServer: Sendable {
    package let port: Int
    private let listener: Int32
    private let connections = Mutex<[RawConnection]>([])

    package struct NoSocket: Error {
        package let number: Int32
    }

    /// - Parameter serve: when it returns, the connection is closed.
    package init(address: String = "127.0.0.1", port: Int = 0, _ serve: @escaping @Sendable (RawConnection) -> Void)
        throws
    {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var one: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, 4)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = in_port_t(port).bigEndian
        inet_pton(AF_INET, address, &name.sin_addr)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, length) == 0 && listen(listener, 1024) == 0
                    && getsockname(listener, pointer, &length) == 0
            }
        }
        guard bound else {
            let number = errno
            close(listener)
            throw NoSocket(number: number)
        }
        self.listener = listener
        self.port = Int(in_port_t(bigEndian: name.sin_port))
        Thread.start(name: "raw-server") { [self] in
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else {
                    if errno == ECONNABORTED || errno == EINTR { continue }
                    break
                }
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                let connection = RawConnection(descriptor)
                connections.withLock { $0.append(connection) }
                Thread.start(name: "raw-connection") {
                    serve(connection)
                    connection.end()
                }
            }
            close(listener)
        }
    }

    /// How many have connected since the start.
    package var accepted: Int { connections.withLock { $0.count } }

    package func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        for connection in connections.withLock({ $0 }) { connection.interrupt() }
    }
}

/// One connection, in the hands of one thread; `interrupt` may come from anywhere.
package final class RawConnection: Sendable {
    private let descriptor: Mutex<Int32>
    private let rest = Mutex<[UInt8]>([])

    init(_ descriptor: Int32) { self.descriptor = Mutex(descriptor) }

    /// As a client, to a port of this machine.
    package convenience init(to port: Int) throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = in_port_t(port).bigEndian
        name.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
        let isConnected = withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else {
            let number = errno
            close(descriptor)
            throw RawServer.NoSocket(number: number)
        }
        self.init(descriptor)
    }

    /// To be read again.
    func put(back bytes: [UInt8]) { rest.withLock { $0 = bytes + $0 } }

    /// The bytes that have come, at most `most`; nil at the end.
    package func read(_ most: Int = 65_536) -> [UInt8]? {
        let kept = rest.withLock { rest in
            defer { rest = [] }
            return rest
        }
        if !kept.isEmpty { return kept }
        let from = descriptor.withLock { $0 }
        guard from >= 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: most)
        var count = -1
        repeat { count = Glibc.read(from, &bytes, most) } while count < 0 && errno == EINTR
        return count > 0 ? Array(bytes[..<count]) : nil
    }

    /// Up to and with `mark`, as text; nil when the connection ends before.
    package func read(until mark: String) -> String? {
        var bytes: [UInt8] = []
        let end = Array(mark.utf8)
        while let more = read() {
            bytes += more
            if let range = bytes.firstRange(of: end) {
                rest.withLock { $0 = Array(bytes[range.upperBound...]) }
                return String(decoding: bytes[..<range.upperBound], as: UTF8.self)
            }
        }
        return nil
    }

    /// The head of a request.
    package func readHead() -> String? { read(until: "\r\n\r\n") }

    /// Exactly `count` bytes; nil when the connection ends earlier.
    package func read(exactly count: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        while bytes.count < count {
            guard let more = read() else { return nil }
            bytes += more
        }
        rest.withLock { $0 = Array(bytes[count...]) }
        return Array(bytes[..<count])
    }

    /// False when nobody listens any more.
    @discardableResult
    package func write(_ text: String) -> Bool { write(Array(text.utf8)) }

    @discardableResult
    package func write(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let to = descriptor.withLock { $0 }
            guard to >= 0 else { return false }
            let count = bytes.withUnsafeBytes {
                send(to, $0.baseAddress?.advanced(by: sent), bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// An answer with a body and its length.
    @discardableResult
    package func answer(_ body: String, status: String = "200 OK", headers: String = "") -> Bool {
        write("HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\(headers)\r\n\(body)")
    }

    /// Returns when the other side has gone.
    package func waitForEnd() {
        while read() != nil {}
    }

    /// Ends it so that the other side gets a reset and not an end.
    package func reset() {
        var now = linger(l_onoff: 1, l_linger: 0)
        let one = descriptor.withLock { $0 }
        setsockopt(one, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
        end()
    }

    package func end() {
        let one = descriptor.withLock { descriptor in
            defer { descriptor = -1 }
            return descriptor
        }
        if one >= 0 { close(one) }
    }

    func interrupt() {
        let one = descriptor.withLock { $0 }
        if one >= 0 { shutdown(one, Int32(SHUT_RDWR)) }
    }
}
