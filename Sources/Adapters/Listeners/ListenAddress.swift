import CMicrohttpd
import Glibc

/// An address of this machine and a port to listen on, as in 127.0.0.1:8470 or [::1]:8470. localhost is the only name: other names depend
/// on DNS, and may change.
package struct ListenAddress: Sendable, Equatable, CustomStringConvertible {
    package let host: String
    package let port: UInt16
    private let isSix: Bool

    package static let expectation = "an address and a port such as 127.0.0.1:8470 or [::1]:8470, or off"

    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.allSatisfy({ (48...57).contains($0) }), let port = UInt16(digits) else { return nil }
        var host = String(text[..<colon])
        if host == "localhost" { host = "127.0.0.1" }
        let isSix = host.hasPrefix("[") && host.hasSuffix("]")
        if isSix { host = String(host.dropFirst().dropLast()) }
        var space = in6_addr()
        guard inet_pton(isSix ? AF_INET6 : AF_INET, host, &space) == 1 else { return nil }
        self.host = host
        self.port = port
        self.isSix = isSix
    }

    init(host: String, port: UInt16, isSix: Bool) {
        self.host = host
        self.port = port
        self.isSix = isSix
    }

    package var description: String { isSix ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Nobody outside of this machine can reach it.
    package var isLoopback: Bool {
        guard isSix else { return host.hasPrefix("127.") }
        var address = in6_addr()
        inet_pton(AF_INET6, host, &address)
        return withUnsafeBytes(of: address) { $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1 }
    }

    /// A listening socket, and the address with the port that the system chose if 0 was asked for.
    func open() throws(ListenerError) -> (socket: Int32, address: ListenAddress) {
        let family = isSix ? AF_INET6 : AF_INET
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(family, kind, 0)
        guard descriptor >= 0 else { throw .cannotListen(at: description, number: errno) }
        var one: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        var place = sockaddr_storage()
        let size = fill(&place)
        let bound = withUnsafeMutablePointer(to: &place) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                var length = size
                return bind(descriptor, address, size) == 0 && listen(descriptor, 4096) == 0
                    && getsockname(descriptor, address, &length) == 0
            }
        }
        guard bound else {
            let number = errno
            close(descriptor)
            throw number == EADDRINUSE ? .taken(description) : .cannotListen(at: description, number: number)
        }
        return (descriptor, ListenAddress(host: host, port: Self.port(of: place), isSix: isSix))
    }

    private func fill(_ place: inout sockaddr_storage) -> socklen_t {
        withUnsafeMutableBytes(of: &place) { bytes in
            if isSix {
                var address = sockaddr_in6()
                address.sin6_family = sa_family_t(AF_INET6)
                address.sin6_port = port.bigEndian
                inet_pton(AF_INET6, host, &address.sin6_addr)
                bytes.storeBytes(of: address, as: sockaddr_in6.self)
                return socklen_t(MemoryLayout<sockaddr_in6>.size)
            }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            inet_pton(AF_INET, host, &address.sin_addr)
            bytes.storeBytes(of: address, as: sockaddr_in.self)
            return socklen_t(MemoryLayout<sockaddr_in>.size)
        }
    }

    /// Both families have it in the same place.
    private static func port(of place: sockaddr_storage) -> UInt16 {
        withUnsafeBytes(of: place) { UInt16(bigEndian: $0.load(fromByteOffset: 2, as: UInt16.self)) }
    }

    /// The address of a peer, without its port.
    static func host(of address: UnsafePointer<sockaddr>) -> String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let raw = UnsafeRawPointer(address)
        let isSix = address.pointee.sa_family == sa_family_t(AF_INET6)
        inet_ntop(isSix ? AF_INET6 : AF_INET, raw + (isSix ? 8 : 4), &text, socklen_t(text.count))
        return text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "?" }
    }

    static func isLoopback(host: String) -> Bool {
        host.hasPrefix("127.") || host == "::1" || host.hasPrefix("::ffff:127.")
    }
}
