import CMicrohttpd
import Glibc
import Synchronization

/// Every open connection, and how long it may go on. While the lock is held nothing else is called but `shutdown` and `epoll_wait`, which do
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

    /// Counted as they come and go: with ten thousand open, looking through all of them for each new one costs seconds.
    private struct Table {
        var entries: [Int: Entry] = [:]
        var perPeer: [String: Int] = [:]
        var cut = 0
        /// At once, since somebody asked last.
        var most = 0

        mutating func cut(_ key: Int) {
            guard let entry = entries[key], !entry.isCut else { return }
            entries[key]?.isCut = true
            cut += 1
            shutdown(entry.socket, Int32(SHUT_RDWR))
        }
    }

    private let limits: Limits
    private let table = Mutex(Table())
    private let turn = Mutex(0)
    /// Asking the system for those that have gone costs as much as there are of these, and not as there are connections.
    private let hangups = millrace_mhd_hangups()

    init(_ limits: Limits) {
        self.limits = limits
    }

    deinit {
        if hangups >= 0 { close(hangups) }
    }

    var count: Int { table.withLock { $0.entries.count } }

    /// The most that were open at once since this was asked last.
    func takeMost() -> Int {
        table.withLock { table in
            defer { table.most = table.entries.count }
            return table.most
        }
    }

    /// Whether another connection may come. When we are full, the connection that has been idle longest is closed: clients that only hold
    /// connections open keep nobody out.
    func admits(_ peer: String) -> Bool {
        table.withLock { table in
            if !ListenAddress.isLoopback(host: peer), table.perPeer[peer, default: 0] >= limits.perAddress {
                return false
            }
            guard table.entries.count - table.cut >= limits.connections else { return true }
            let oldest = table.entries.filter { $0.value.patience.isWaiting && !$0.value.isCut }
                .min { ($0.value.patience.deadline ?? .now, $0.key) < ($1.value.patience.deadline ?? .now, $1.key) }
            guard let oldest else { return false }
            table.cut(oldest.key)
            return true
        }
    }

    func enter(socket: Int32, peer: String) -> Int {
        let key = turn.withLock { turn in
            turn += 1
            return turn
        }
        table.withLock { table in
            table.entries[key] = Entry(
                socket: socket, peer: peer, patience: ConnectionDeadline(limits.patience, at: .now))
            table.perPeer[peer, default: 0] += 1
            table.most = max(table.most, table.entries.count)
        }
        _ = millrace_mhd_heed_hangup(hangups, socket, UInt64(key))
        return key
    }

    func leave(_ key: Int) {
        table.withLock { table in
            guard let entry = table.entries.removeValue(forKey: key) else { return }
            if entry.isCut { table.cut -= 1 }
            let left = table.perPeer[entry.peer, default: 1] - 1
            table.perPeer[entry.peer] = left > 0 ? left : nil
        }
    }

    func peer(_ key: Int) -> String { table.withLock { $0.entries[key]?.peer ?? "?" } }

    func change(_ key: Int, _ body: (inout ConnectionDeadline) -> Void) {
        table.withLock { table in
            guard table.entries[key] != nil else { return }
            body(
                &table.entries[
                    key, default: Entry(socket: -1, peer: "", patience: ConnectionDeadline(limits.patience, at: .now))
                ]
                .patience)
        }
    }

    /// The exchange to notify when the client goes away while we work.
    func attach(_ exchange: Exchange?, to key: Int) {
        table.withLock { $0.entries[key]?.exchange = exchange }
    }

    func cut(_ key: Int) {
        table.withLock { $0.cut(key) }
    }

    /// Cuts connections that have used up their time. Returns the exchanges whose clients went away while we worked for them.
    func sweep(at now: ContinuousClock.Instant) -> [Exchange] {
        table.withLock { table in
            let late = table.entries.filter {
                !$0.value.isCut && ($0.value.patience.deadline.map { $0 <= now } ?? false)
            }
            for key in late.keys { table.cut(key) }
            var gone: Set<UInt64> = []
            var keys = [UInt64](repeating: 0, count: 256)
            // One that hangs up while it sends or waits is shown again each time, behind the others.
            for _ in 0..<64 {
                let count = Int(millrace_mhd_hung_up(hangups, &keys, 256))
                let before = gone.count
                gone.formUnion(keys.prefix(count))
                if gone.count == before || count < 256 { break }
            }
            return gone.compactMap { key in
                guard let entry = table.entries[Int(key)], entry.patience.deadline == nil else { return nil }
                return entry.exchange
            }
        }
    }
}
