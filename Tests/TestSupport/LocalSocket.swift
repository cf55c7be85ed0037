import Glibc
import Threads

/// A plain socket on this machine: for requests that no correct client would send, and for ports.
package enum LocalSocket {
    package struct Refused: Error, CustomStringConvertible {
        let port: UInt16
        package var description: String { "nobody listens on \(port)" }
    }

    /// A socket, which the caller closes. It waits for an answer for two minutes at most.
    /// - Parameter room: of its buffer for what comes; nil: as the system has it.
    package static func connect(to port: UInt16, room: Int32? = nil) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if var room { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size)) }
        var patience = timeval(tv_sec: 120, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var address = address(port)
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else {
            close(descriptor)
            throw Refused(port: port)
        }
        return descriptor
    }

    /// Sends it, and reads until the other side closes.
    package static func exchange(_ bytes: [UInt8], port: UInt16) async throws -> [UInt8] {
        try await Thread.run(name: "raw-request") { Result { try wait(bytes, port: port) } }.get()
    }

    private static func wait(_ bytes: [UInt8], port: UInt16) throws -> [UInt8] {
        let end = try connect(to: port)
        defer { close(end) }
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                send(
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
            guard count > 0 else { return answer }
            answer += chunk.prefix(count)
        }
    }

    fileprivate static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}

/// A port that was free a moment ago.
package func freePort() throws -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = LocalSocket.address(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
        }
    }
    guard isBound else { throw LocalSocket.Refused(port: 0) }
    return Int(UInt16(bigEndian: address.sin_port))
}
