import CommandKit
import Glibc
import LoadKit
import Synchronization
import Threads

/// Clients that want little and keep much: connections that say nothing, requests that never end, streams that are hardly read. One thread
/// holds them all; what the gateway cuts comes again.
final class GatewayCrowd: Sendable {
    struct Counts: Sendable {
        /// Open at the most at one time.
        var most = 0
        var cut = 0
        var again = 0
        var bytes = 0
    }

    private enum Manner {
        case silent
        /// A request without an end, a byte at a time.
        case dripping
        /// One whole request, then nothing.
        case idle
        /// A stream of which a few bytes are read now and then.
        case slow
    }

    private struct Member {
        let manner: Manner
        let request: [UInt8]
        var socket: Int32 = -1
        var sent = 0
    }

    private let port: UInt16
    private let isOver = Atomic(false)
    private let counts = Mutex(Counts())
    private let isThrough = Atomic(false)

    /// - Parameter tokens: of the people who follow streams, in turn.
    init(port: UInt16, idle: Int, slow: Int, tokens: [String]) {
        self.port = port
        var members: [Member] = []
        for place in 0..<idle {
            let token = tokens[place % tokens.count]
            switch place % 3 {
            case 0: members.append(Member(manner: .silent, request: []))
            case 1:
                members.append(
                    Member(
                        manner: .dripping,
                        request: Array(
                            "GET /v1/me/events HTTP/1.1\r\nHost: localhost\r\nX-Long: \(String(repeating: "x", count: 8000))"
                                .utf8)))
            default:
                let request = GatewayClient.request("POST", "/v1/rpc/now", token: token, body: "{}")
                members.append(Member(manner: .idle, request: Array(request.utf8)))
            }
        }
        for place in 0..<slow {
            let request = GatewayClient.request(
                "GET", "/v1/me/events?since=0", token: tokens[place % tokens.count],
                headers: [("Accept", "text/event-stream")])
            members.append(Member(manner: .slow, request: Array(request.utf8)))
        }
        let all = members
        Thread.start(name: "gateway-crowd") { [self] in hold(all) }
    }

    var now: Counts { counts.withLock { $0 } }

    func stop() -> Counts {
        isOver.store(true, ordering: .relaxed)
        while !isThrough.load(ordering: .acquiring) { usleep(10_000) }
        return now
    }

    private func hold(_ given: [Member]) {
        var members = given
        var buffer = [UInt8](repeating: 0, count: 64)
        while !isOver.load(ordering: .relaxed) {
            var open = 0
            for place in members.indices {
                if members[place].socket < 0 { join(&members[place]) }
                act(&members[place], &buffer)
                if members[place].socket >= 0 { open += 1 }
                // A second goes round for all, so connecting comes in a thin stream.
                if place % 50 == 49 { usleep(5000) }
                if isOver.load(ordering: .relaxed) { break }
            }
            counts.withLock { $0.most = max($0.most, open) }
            usleep(200_000)
        }
        for member in members where member.socket >= 0 { close(member.socket) }
        isThrough.store(true, ordering: .releasing)
    }

    private func join(_ member: inout Member) {
        guard let client = Loopback.connection(to: port) else { return }
        if member.manner == .slow {
            var small: Int32 = 4096
            setsockopt(client, SOL_SOCKET, SO_RCVBUF, &small, socklen_t(MemoryLayout<Int32>.size))
        }
        member.socket = client
        member.sent = 0
        if member.manner == .idle || member.manner == .slow { push(&member, most: member.request.count) }
        counts.withLock { $0.again += 1 }
    }

    private func push(_ member: inout Member, most: Int) {
        let end = min(member.request.count, member.sent + most)
        guard member.sent < end else { return }
        let count = member.request[member.sent..<end].withUnsafeBytes {
            send(member.socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        }
        if count > 0 { member.sent += count }
    }

    private func act(_ member: inout Member, _ buffer: inout [UInt8]) {
        guard member.socket >= 0 else { return }
        if member.manner == .dripping { push(&member, most: 1) }
        let count = recv(member.socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        if count > 0 {
            counts.withLock { $0.bytes += count }
        } else if count == 0 || errno != EAGAIN && errno != EINTR {
            close(member.socket)
            member.socket = -1
            counts.withLock { $0.cut += 1 }
        }
    }
}
