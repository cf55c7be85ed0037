import CommandKit
import Glibc
import LoadKit
import Synchronization
import Threads

/// Stands between workers and Postgres on a Unix socket, and cuts, stalls and swallows what passes. One thread, one poll.
final class LedgerProxy: Sendable {
    private struct State {
        var stopping = false
        /// Every connection is closed, once.
        var cut = false
        /// Nothing passes until then; connections stay open.
        var stalled = 0.0
        /// Until then the data of the connections of that moment are dropped, and the connections are closed.
        var swallowed = 0.0
    }

    private struct Pair {
        var client: Int32
        var server: Int32
        var toServer: [UInt8] = []
        var toClient: [UInt8] = []
        var isSwallowed = false
    }

    let directory: String
    let port: Int
    private let target: String
    private let state = Mutex(State())

    /// - Parameter target: the socket file of the server.
    init(directory: String, port: Int, target: String) {
        self.directory = directory
        self.port = port
        self.target = target
    }

    func start() throws(Failure) {
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard listener >= 0, Self.withAddress("\(directory)/.s.PGSQL.\(port)", { bind(listener, $0, $1) }) == 0,
            listen(listener, 128) == 0
        else { throw Failure("the proxy cannot listen in \(directory)") }
        chmod("\(directory)/.s.PGSQL.\(port)", 0o777)
        Thread.start(name: "ledger-proxy") { [self] in loop(listener) }
    }

    func stop() { state.withLock { $0.stopping = true } }
    func cut() { state.withLock { $0.cut = true } }
    func stall(until time: Double) { state.withLock { $0.stalled = time } }
    func swallow(until time: Double) { state.withLock { $0.swallowed = time } }

    private func loop(_ listener: Int32) {
        var pairs: [Pair] = []
        var swallowing = false
        while true {
            let now = MachineClock.now()
            let (order, isStalled) = state.withLock { state in
                defer { state.cut = false }
                return (state, state.stalled > now)
            }
            if order.stopping || order.cut {
                for pair in pairs { Self.close(pair) }
                pairs = []
                if order.stopping { break }
            }
            if order.swallowed > now, !swallowing {
                swallowing = true
                for index in pairs.indices { pairs[index].isSwallowed = true }
            } else if order.swallowed <= now, swallowing {
                swallowing = false
                for pair in pairs where pair.isSwallowed { Self.close(pair) }
                pairs.removeAll(where: \.isSwallowed)
            }
            if isStalled {
                usleep(20_000)
                continue
            }
            var polled = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
            for pair in pairs {
                polled.append(pollfd(fd: pair.client, events: Self.events(pair.toServer, pair.toClient), revents: 0))
                polled.append(pollfd(fd: pair.server, events: Self.events(pair.toClient, pair.toServer), revents: 0))
            }
            _ = poll(&polled, nfds_t(polled.count), 20)
            var ended: Set<Int> = []
            for index in pairs.indices {
                let (client, server) = (polled[1 + 2 * index].revents, polled[2 + 2 * index].revents)
                if !Self.move(&pairs[index], client: client, server: server) { ended.insert(index) }
            }
            for index in ended.sorted(by: >) { Self.close(pairs.remove(at: index)) }
            if polled[0].revents & Int16(POLLIN) != 0 { accept(listener, &pairs) }
        }
        Glibc.close(listener)
        unlink("\(directory)/.s.PGSQL.\(port)")
    }

    private func accept(_ listener: Int32, _ pairs: inout [Pair]) {
        let client = Glibc.accept(listener, nil, nil)
        guard client >= 0 else { return }
        _ = fcntl(client, F_SETFD, FD_CLOEXEC)
        _ = fcntl(client, F_SETFL, O_NONBLOCK)
        let server = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard server >= 0, Self.withAddress(target, { connect(server, $0, $1) }) == 0 else {
            if server >= 0 { Glibc.close(server) }
            Glibc.close(client)
            return
        }
        _ = fcntl(server, F_SETFL, O_NONBLOCK)
        pairs.append(Pair(client: client, server: server))
    }

    /// Reads while little waits to be written; writes waiting data.
    private static func events(_ incoming: [UInt8], _ outgoing: [UInt8]) -> Int16 {
        Int16(incoming.count < 1 << 18 ? POLLIN : 0) | Int16(outgoing.isEmpty ? 0 : POLLOUT)
    }

    private static func move(_ pair: inout Pair, client: Int16, server: Int16) -> Bool {
        let readable = Int16(POLLIN) | Int16(POLLHUP) | Int16(POLLERR)
        if client & readable != 0, !read(pair.client, &pair.toServer) { return false }
        if server & readable != 0, !read(pair.server, &pair.toClient) { return false }
        if pair.isSwallowed {
            pair.toServer = []
            pair.toClient = []
        }
        return write(pair.server, &pair.toServer) && write(pair.client, &pair.toClient)
    }

    private static func read(_ file: Int32, _ buffer: inout [UInt8]) -> Bool {
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        let got = Glibc.read(file, &chunk, chunk.count)
        if got > 0 { buffer += chunk[..<got] }
        return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))
    }

    private static func write(_ file: Int32, _ buffer: inout [UInt8]) -> Bool {
        guard !buffer.isEmpty else { return true }
        let put = send(file, buffer, buffer.count, Int32(MSG_NOSIGNAL))
        if put > 0 { buffer.removeFirst(put) }
        return put > 0 || errno == EAGAIN || errno == EINTR
    }

    private static func close(_ pair: Pair) {
        Glibc.close(pair.client)
        Glibc.close(pair.server)
    }

    private static func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8CString)
        guard bytes.count <= MemoryLayout.size(ofValue: address.sun_path) else { return -1 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes.map { UInt8(bitPattern: $0) }) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
