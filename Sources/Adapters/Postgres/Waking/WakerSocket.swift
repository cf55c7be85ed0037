import Glibc
import Threads

/// One end of a stream between two processes of this host, or the place where others connect. Closed with its owner.
final class WakerSocket: Sendable {
    let descriptor: Int32

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// nil: nobody answers at this path.
    static func connected(to path: String) -> WakerSocket? {
        guard let made = made() else { return nil }
        let result = withAddress(path) { connect(made.descriptor, $0, $1) }
        return result == 0 ? made : nil
    }

    /// Takes the place of a socket that nobody serves any more. Its owner and group may connect.
    static func listening(at path: String) throws(WakerFailure) -> WakerSocket {
        guard path.utf8.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path) else {
            throw WakerFailure(path: path, reason: "the path is too long for a socket")
        }
        if connected(to: path) != nil { throw WakerFailure(path: path, reason: "another waker serves it") }
        var status = stat()
        if lstat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFSOCK else {
                throw WakerFailure(path: path, reason: "there is something else, and not a socket")
            }
            unlink(path)
        }
        guard let made = made() else { throw WakerFailure(path: path, reason: String(cString: strerror(errno))) }
        guard withAddress(path, { bind(made.descriptor, $0, $1) }) == 0, chmod(path, 0o660) == 0,
            listen(made.descriptor, 128) == 0
        else { throw WakerFailure(path: path, reason: String(cString: strerror(errno))) }
        return made
    }

    private static func made() -> WakerSocket? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        return descriptor < 0 ? nil : WakerSocket(descriptor)
    }

    private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: target.sun_path) else { return -1 }
        withUnsafeMutableBytes(of: &target.sun_path) { $0.copyBytes(from: bytes) }
        return withUnsafePointer(to: &target) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                body(address, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }

    /// Ends it before its owner goes.
    func shut() {
        shutdown(descriptor, Int32(SHUT_RDWR))
    }

    func accepted() -> WakerSocket? {
        let descriptor = accept(descriptor, nil, nil)
        guard descriptor >= 0 else { return nil }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return WakerSocket(descriptor)
    }

    /// Never waits; false: the other side does not read, or has gone.
    func send(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL)) == bytes.count
    }

    /// nil: the other side has gone.
    func received() -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN || errno == EINTR { return [] }
        return count > 0 ? Array(bytes[..<count]) : nil
    }

    /// Waits until one of these can be read, or the interrupt fires; the indexes of those that can.
    static func wait(for sockets: [WakerSocket], interrupt: Interrupt, atMost milliseconds: Int32 = -1) -> [Int] {
        var waits = sockets.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        waits.append(pollfd(fd: interrupt.descriptor, events: Int16(POLLIN), revents: 0))
        guard poll(&waits, nfds_t(waits.count), milliseconds) > 0 else { return [] }
        return sockets.indices.filter { waits[$0].revents != 0 }
    }
}

/// Why a waker cannot serve.
package struct WakerFailure: Error, Sendable, CustomStringConvertible {
    package let path: String
    package let reason: String

    package var description: String { "The waker cannot serve \(path): \(reason)." }
}

/// Cuts what comes in into lines.
struct WakerLines {
    private var rest: [UInt8] = []

    /// No line of ours is longer: a payload has less than 8,000 bytes.
    static let longest = 16_384

    /// nil: a line is too long.
    mutating func add(_ bytes: [UInt8]) -> [String]? {
        rest += bytes
        var lines: [String] = []
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            lines.append(String(decoding: rest[..<end], as: UTF8.self))
            rest.removeFirst(end + 1)
        }
        return rest.count > Self.longest ? nil : lines
    }
}

/// What a waker says to the workers of its host, a line each.
enum WakerWord: Equatable {
    /// From now on everything is heard; earlier changes must be looked for.
    case began
    case ended
    case said(channel: String, payload: String)
    case order(WakerOrder)

    var line: String {
        switch self {
        case .began: "began\n"
        case .ended: "ended\n"
        case .order(let order): "\(order.rawValue)\n"
        case .said(let channel, let payload): "\(channel) \(payload.replacing("\n", with: " "))\n"
        }
    }

    init?(_ line: String) {
        switch line {
        case "began": self = .began
        case "ended": self = .ended
        default:
            guard let space = line.firstIndex(of: " ") else {
                guard let order = WakerOrder(rawValue: line) else { return nil }
                self = .order(order)
                return
            }
            self = .said(channel: String(line[..<space]), payload: String(line[line.index(after: space)...]))
        }
    }
}
