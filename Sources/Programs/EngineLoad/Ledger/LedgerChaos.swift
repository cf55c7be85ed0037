import Clusters
import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import Postgres
import Synchronization

/// Does what production does to a system, in an order that the seed gives.
final class LedgerChaos: Sendable {
    enum Kind: String, CaseIterable {
        case kill, freeze, terminate, cut, stall, swallow, transaction, locks, exhaust, pooler, stop, disk, failover

        /// The faults that the seed draws from; a failover happens only on request.
        static var drawn: [Kind] { allCases.filter { $0 != .failover } }
    }

    private struct State {
        var faults: [LedgerFault] = []
        var frozen: Set<String> = []
        var counts: [Kind: Int] = [:]
        var promoted: Double?
    }

    private let world: LedgerWorld
    private let weights: [(Kind, Int)]
    /// The share of freezes that last longer than a rescue takes.
    private let longFreezes: Double
    private let longFreeze: ClosedRange<Double>
    private let state = Mutex(State())

    /// Where a safeguard is missing, the faults are those that it guards against: for the check of tokens, workers that come back from the
    /// dead; for the sweep, no fault that makes a worker start again and so look everywhere.
    init(world: LedgerWorld, broken: LedgerBreak?, only: Set<String>) {
        self.world = world
        let usual: [(Kind, Int)] =
            switch broken {
            case .noTokenCheck: Self.weights + [(.freeze, 120)]
            case .noSweep: [(.transaction, 3), (.locks, 1)]
            case .finishBeforeEffect, .earlyRescue, .signalTwice, .signalLost, nil:
                Self.weights + (world.disk == nil ? [] : [(.disk, 2)])
            }
        weights = only.isEmpty ? usual : usual.filter { only.contains($0.0.rawValue) }
        longFreezes = broken == .noTokenCheck ? 0.9 : 0.4
        longFreeze = broken == .noTokenCheck ? 8...14 : 34...45  // its workers are taken for dead sooner
    }

    var faults: [LedgerFault] { state.withLock { $0.faults } }
    var counts: [(String, Int)] {
        state.withLock { state in Kind.allCases.compactMap { kind in state.counts[kind].map { (kind.rawValue, $0) } } }
    }

    /// When the standby was promoted.
    var promoted: Double? { state.withLock { $0.promoted } }

    func failOver(_ failover: Failover) async throws {
        note(.failover, for: 15, crashes: true)
        let promoted = try await failover.strike()
        state.withLock { $0.promoted = promoted }
    }

    /// At most a twentieth stop the database, with the full disk that may.
    private static let weights: [(Kind, Int)] = [
        (.kill, 22), (.freeze, 10), (.terminate, 16), (.cut, 15), (.stall, 8), (.swallow, 5), (.transaction, 6),
        (.locks, 6),
        (.exhaust, 4), (.pooler, 4), (.stop, 3),
    ]

    /// `count` faults spread over the time; a long fault continues beside the next one.
    func run(seed: UInt64, faults count: Int, until end: ContinuousClock.Instant) async throws {
        var random = SeededChoices(seed: seed)
        let pause = ContinuousClock.now.duration(to: end) / max(1, count)
        var next = ContinuousClock.now + pause / 2
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<count {
                let now = ContinuousClock.now
                if next > now { try await Task.sleep(for: now.duration(to: next)) }
                next += pause
                guard ContinuousClock.now < end, let kind = random.pick(weights) else { break }
                let seed = random.next()
                if kind == .stop || kind == .disk {
                    try await strike(kind, SeededChoices(seed: seed))  // alone: the others need a database
                } else {
                    group.addTask { try await self.strike(kind, SeededChoices(seed: seed)) }
                }
            }
            try await group.waitForAll()
        }
    }

    /// A killed worker that spoke through a pooler is missed after half a minute; one that was cut off is back within seconds.
    private static func aftermath(of kind: Kind) -> Double {
        switch kind {
        case .kill, .pooler, .stop, .disk, .failover: 45
        case .freeze, .stall, .swallow: 12
        case .terminate, .cut, .locks, .exhaust: 6
        case .transaction: 0
        }
    }

    private func note(_ kind: Kind, for seconds: Double, workers: Set<String>? = nil, crashes: Bool = false) {
        let now = MachineClock.now()
        state.withLock { state in
            state.counts[kind, default: 0] += 1
            guard kind != .transaction else { return }  // takes no worker's beat away
            state.faults.append(
                LedgerFault(
                    what: kind.rawValue, from: now - 0.5, until: now + seconds, aftermath: Self.aftermath(of: kind),
                    undoesClaims: crashes, workers: workers))
        }
    }

    private func strike(_ kind: Kind, _ given: SeededChoices) async throws {
        var random = given
        let names = world.workers.map(\.name)
        let name = names.randomElement(using: &random) ?? names[0]
        let proxied: Set<String> = world.hasPooler ? ["proxied-1", "proxied-2"] : ["proxied-1", "proxied-2", "pooled"]
        switch kind {
        case .kill:
            guard let pid = world.pid(of: name) else { return }
            note(kind, for: 1, workers: [name])
            Glibc.kill(pid, SIGKILL)
        case .freeze: try await freeze(name, &random)
        case .terminate:
            note(kind, for: 1)
            try await withDatabase { connection in
                try await connection.execute(
                    """
                    select pg_terminate_backend(pid) from (
                        select pid from pg_stat_activity where application_name = 'millrace' order by random() limit $1) some
                    """, [.int8(Int64.random(in: 1...6, using: &random))])
            }
        case .cut:
            note(kind, for: 1, workers: proxied)
            world.proxy.cut()
        case .stall, .swallow:
            let seconds = Double.random(in: 0.5...(kind == .stall ? 8 : 20), using: &random)
            note(kind, for: seconds + 1, workers: proxied)
            let until = MachineClock.now() + seconds
            if kind == .stall { world.proxy.stall(until: until) } else { world.proxy.swallow(until: until) }
        case .transaction: try await keepOpen(for: .random(in: 2...25, using: &random))
        case .locks: try await lock(&random)
        case .exhaust: try await exhaust(for: .random(in: 0.5...3, using: &random))
        case .pooler:
            note(kind, for: 2, workers: ["pooled"])
            world.restartPooler()
        case .disk: try await fillDisk(for: .random(in: 1...6, using: &random))
        case .failover: break  // by `failOver` alone
        case .stop: try await stop(isCrash: random.chance(0.7), for: .random(in: 0...6, using: &random))
        }
    }

    /// Longer than half a minute, and it is taken for dead while it still believes in its leases.
    private func freeze(_ name: String, _ random: inout SeededChoices) async throws {
        let seconds =
            random.chance(longFreezes)
            ? Double.random(in: longFreeze, using: &random) : Double.random(in: 0.5...16, using: &random)
        guard let pid = world.pid(of: name), state.withLock({ $0.frozen.insert(name).inserted }) else { return }
        note(.freeze, for: seconds + 1, workers: [name])
        Glibc.kill(pid, SIGSTOP)
        try await Task.sleep(for: .seconds(seconds))
        Glibc.kill(pid, SIGCONT)
        _ = state.withLock { $0.frozen.remove(name) }
    }

    /// A transaction with a snapshot of its own.
    private func keepOpen(for seconds: Double) async throws {
        note(.transaction, for: 0)
        try await withDatabase { connection in
            try await connection.execute("begin isolation level repeatable read")
            _ = try await connection.query("select count(*) from millrace.queue") { row throws(PostgresError) in
                try row.int(0)
            }
            try await Task.sleep(for: .seconds(seconds))
            try await connection.execute("commit")
        }
    }

    private static let locks: [SQL] = [
        "lock table millrace.ready in share mode", "select from millrace.lease limit 5 for update",
        "lock table millrace.history in share mode", "lock table millrace.timer in share mode",
        "lock table millrace.job in share mode", "lock table millrace.wait in share mode",
        "lock table millrace.signal in share mode",
    ]

    private func lock(_ random: inout SeededChoices) async throws {
        let seconds = Double.random(in: 0.3...4, using: &random)
        note(.locks, for: seconds + 1)
        let lock = Self.locks.randomElement(using: &random) ?? Self.locks[0]
        try await withDatabase { connection in
            try await connection.execute("begin")
            try await connection.execute(lock)
            try await Task.sleep(for: .seconds(seconds))
            try await connection.execute("rollback")
        }
    }

    private func exhaust(for seconds: Double) async throws {
        note(.exhaust, for: 5)
        var held: [Connection] = []
        for _ in 0..<200 {
            guard let one = try? await Connection.open(world.straight, name: "exhaust") else { break }
            held.append(one)
        }
        try await Task.sleep(for: .seconds(seconds))
        for one in held { await one.close() }
    }

    private func fillDisk(for seconds: Double) async throws {
        note(.disk, for: seconds + 10, crashes: true)
        world.disk?.fill()
        try await Task.sleep(for: .seconds(seconds))
        world.disk?.empty()
        do {
            // It may have ended: without room for its log Postgres stops, and does not always come back on its own.
            _ = try await world.cluster.start(deadline: .seconds(120))
        } catch {
            throw Failure("the private Postgres did not come back from a full disk: \(error)")
        }
    }

    private func stop(isCrash: Bool, for seconds: Double) async throws {
        note(.stop, for: seconds + 5, crashes: isCrash)
        do {
            try await world.cluster.stop(isCrash ? .immediate : .fast, deadline: .seconds(60))
            try await Task.sleep(for: .seconds(seconds))
            _ = try await world.cluster.start(deadline: .seconds(120))
        } catch {
            throw Failure("the private Postgres did not come back: \(error)")
        }
    }

    /// A fault that finds no database, or loses it, has struck all the same.
    private func withDatabase(_ body: (Connection) async throws -> Void) async throws {
        do {
            let connection = try await Connection.open(world.straight, name: "chaos")
            defer { Task { await connection.close() } }  // also after an error; nothing waits for it
            try await body(connection)
        } catch is PostgresError {}
    }
}
