import CMicrohttpd
import Glibc
import Synchronization

/// Every open connection, and how long it may go on. While the lock is held nothing else is called but `shutdown` and `poll`, which do
/// not wait. A connection is removed before its descriptor is closed, so a new connection with the same descriptor is never cut instead.
final class OpenConnections: Sendable {
    struct Limits: Sendable {
        var connections: Int
        var perAddress: Int
        var patience = ConnectionDeadline.Limits()
    }

    private struct Entry {
        let socket: Int32
        let peer: String
        var patience: ConnectionDeadline
        var exchange: Exchange?
        var isCut = false
    }

    private let limits: Limits
    private let table = Mutex<[Int: Entry]>([:])
    private let turn = Mutex(0)

    init(_ limits: Limits) {
        self.limits = limits
    }

    var count: Int { table.withLock { $0.count } }

    /// Whether another connection may come. When we are full, the connection that has been idle longest is closed: clients that only hold
    /// connections open keep nobody out.
    func admits(_ peer: String) -> Bool {
        table.withLock { table in
            if !ListenAddress.isLoopback(host: peer),
                table.values.count(where: { $0.peer == peer }) >= limits.perAddress
            {
                return false
            }
            guard table.values.count(where: { !$0.isCut }) >= limits.connections else { return true }
            let oldest = table.filter { $0.value.patience.isWaiting && !$0.value.isCut }
                .min { ($0.value.patience.deadline ?? .now, $0.key) < ($1.value.patience.deadline ?? .now, $1.key) }
            guard let oldest else { return false }
            table[oldest.key]?.isCut = true
            shutdown(oldest.value.socket, Int32(SHUT_RDWR))
            return true
        }
    }

    func enter(socket: Int32, peer: String) -> Int {
        let key = turn.withLock { turn in
            turn += 1
            return turn
        }
        table.withLock {
            $0[key] = Entry(socket: socket, peer: peer, patience: ConnectionDeadline(limits.patience, at: .now))
        }
        return key
    }

    func leave(_ key: Int) {
        table.withLock { _ = $0.removeValue(forKey: key) }
    }

    func peer(_ key: Int) -> String { table.withLock { $0[key]?.peer ?? "?" } }

    func change(_ key: Int, _ body: (inout ConnectionDeadline) -> Void) {
        table.withLock { table in
            guard table[key] != nil else { return }
            body(
                &table[
                    key, default: Entry(socket: -1, peer: "", patience: ConnectionDeadline(limits.patience, at: .now))
                ]
                .patience)
        }
    }

    /// The exchange to notify when the client goes away while we work.
    func attach(_ exchange: Exchange?, to key: Int) {
        table.withLock { $0[key]?.exchange = exchange }
    }

    /// Cuts connections that have used up their time. Returns the exchanges whose clients went away while we worked for them.
    func sweep(at now: ContinuousClock.Instant) -> [Exchange] {
        table.withLock { table in
            for (key, entry) in table where !entry.isCut {
                guard let deadline = entry.patience.deadline, deadline <= now else { continue }
                table[key]?.isCut = true
                shutdown(entry.socket, Int32(SHUT_RDWR))
            }
            let busy = table.values.filter { $0.exchange != nil && $0.patience.deadline == nil }
            guard !busy.isEmpty else { return [] }
            let gone = millrace_mhd_hung_up
            var polled = busy.map { pollfd(fd: $0.socket, events: gone, revents: 0) }
            poll(&polled, nfds_t(polled.count), 0)
            let signs = gone | Int16(POLLHUP) | Int16(POLLERR)
            return zip(busy, polled).compactMap { $0.1.revents & signs != 0 ? $0.0.exchange : nil }
        }
    }
}
