import FoundationEssentials
import Postgres
import Synchronization
import Telemetry
import Threads

extension Supervisor {
    /// Exchanges state with the fleet until cancelled; then returns its probes. Opens no connection before the first call.
    package func run() async {
        guard options.database != nil else { return }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.flushLoop() }
            group.addTask { await self.listenLoop() }
        }
        await link?.close()
    }

    private func flushLoop() async {
        while !Task.isCancelled {
            if hasWork {
                let began = now
                await flush()
                // A burst of news becomes one flush, and a database that is away is not asked in a tight loop.
                let pause: Duration = isAway ? .milliseconds(250) : .milliseconds(50)
                try? await Task.sleep(for: max(.zero, pause - (now - began)))
            }
            let due = allDesks.compactMap(\.due).min().map { $0 - now }
            await wake.wait(for: min(max(due ?? .seconds(1), .milliseconds(10)), .seconds(1)))
        }
    }

    private var hasWork: Bool {
        hasAsked || flags.withLock { $0.isWanted } || !allDesks.isEmpty
    }

    /// Sends our news and receives the fleet's, in one statement. `run` does that once a second, and at once when there is news.
    package func flush() async {
        let now = now
        let gates = allDesks
        let told = gates.flatMap { gate in gate.entries(at: now).map { (gate: gate, entry: $0) } }
        do {
            try await exchange(told)
        } catch {
            for one in told { one.gate.untold(one.entry, at: now) }
            let since = lastAnswer.map { self.now - $0 } ?? .seconds(60)
            guard since > .seconds(3) || options.database == nil else { return }
            for gate in gates { gate.detach(at: self.now) }
            if !isAway {
                isAway = true
                log.warning(
                    "cannot read the fleet's view of providers; this worker decides on its own", [("error", "\(error)")]
                )
            }
        }
    }

    private func exchange(_ told: [(gate: ProviderGate, entry: CircuitReport)]) async throws {
        guard let link else { throw CancellationError() }
        let entries = Array(try JSONEncoder().encode(told.map(\.entry)))
        let settings = Array(try JSONEncoder().encode(FlushSettings(options)))
        try await link.use { connection throws(PostgresError) in
            try await self.exchange(told, entries, settings, on: connection)
        }
    }

    private func exchange(
        _ told: [(gate: ProviderGate, entry: CircuitReport)], _ entries: [UInt8], _ settings: [UInt8],
        on connection: Connection
    ) async throws(PostgresError) {
        let sent = self.now
        let fleet = try await FleetStatements.clock(on: connection)
        clock.heard(fleet, sent: sent, received: self.now)
        let rows = try await FleetStatements.flush(
            on: connection, member: member, name: options.name, entries: entries, settings: settings,
            isFirst: !hasAsked || lastAnswer == nil,
            sinceSeconds: lastAnswer.map { (self.now - $0).inSeconds } ?? 0)
        hasAsked = true
        for one in told { one.gate.told(one.entry) }
        let received = self.now
        for row in rows { adopt(row, at: received) }
        if flags.withLock({ $0.isWanted }) {
            let found = try await FleetStatements.flags(on: connection)
            flags.withLock { table in
                table.flags = Dictionary(found.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
            }
        }
        if received - lastTidy > .seconds(60) {
            lastTidy = received
            try await FleetStatements.tidy(on: connection)
        }
        lastAnswer = received
        if isAway {
            isAway = false
            log.info("the fleet's view of providers is back")
        }
    }

    private func adopt(_ row: FleetRow, at now: Moment) {
        let gate = gate(of: row.provider)
        let before = gate.withState { $0.circuits[row.class]?.mirror.generation ?? 0 }
        gate.adopt(row, ahead: clock.ahead, at: now)
        guard row.generation > max(before, 1), lastAnswer != nil else { return }
        log.info(
            "a provider's state has changed",
            [
                ("provider", row.provider), ("class", row.class), ("state", row.state),
                ("reason", row.reason ?? "-"),
            ])
    }

    /// Hears of changes at once, as long as notifications arrive.
    private func listenLoop() async {
        while !hasWork, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(200)) }
        await hearing?.run()
    }
}

/// The settings of this process that the fleet's rules use.
struct FlushSettings: Encodable {
    var quorum: Int
    var probes: Int
    var window_s: Double
    var open_s: Double
    var longest_s: Double
    var ramp_s: Double

    init(_ options: Supervisor.Options) {
        quorum = options.quorum
        probes = options.breaker.probes
        window_s = options.breaker.window.inSeconds
        open_s = options.breaker.open.inSeconds
        longest_s = options.breaker.longestOpen.inSeconds
        ramp_s = options.breaker.rampStep.inSeconds * Double(Ramp.steps.count)
    }
}
