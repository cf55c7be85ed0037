import Glibc

/// The way to a service manager that wants to hear from us: systemd's protocol of datagrams to `NOTIFY_SOCKET`. By hand: libsystemd
/// would be a library more for thirty lines.
package struct ServiceSocket: Sendable, Equatable {
    /// A path, or a name with a NUL in front.
    private let address: [UInt8]
    /// How long we may be silent; nil: as long as we like.
    package let watchdog: Duration?

    /// nil: nobody listens, or only on a kind of socket that we do not support.
    package init?(environment: [String: String], process: Int32 = getpid()) {
        guard let name = environment["NOTIFY_SOCKET"], name.hasPrefix("/") || name.hasPrefix("@") else { return nil }
        var bytes = Array(name.utf8)
        if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
        guard (2...Self.longest).contains(bytes.count) else { return nil }
        address = bytes
        let isOurs = environment["WATCHDOG_PID"].map { $0 == "\(process)" } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap { Int64($0) }
        watchdog = microseconds.flatMap { isOurs && $0 > 0 ? .microseconds($0) : nil }
    }

    /// A path needs its NUL at the end.
    private static let longest = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    /// Never waits: a manager that does not read misses it. True when it was sent.
    @discardableResult
    package func send(_ lines: [String]) -> Bool {
        let descriptor = socket(
            AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &target.sun_path) { $0.copyBytes(from: address) }
        // An abstract name ends where the length says, a path with its NUL.
        let size = MemoryLayout<sa_family_t>.size + address.count + (address[0] == 0 ? 0 : 1)
        let text = Array(lines.map { $0.replacing("\n", with: " ") }.joined(separator: "\n").utf8)
        return withUnsafePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                sendto(
                    descriptor, text, text.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL), address,
                    socklen_t(size)) == text.count
            }
        }
    }
}
