/// This process's whole report about one circuit, in the terms of `millrace.provider_flush`.
struct CircuitReport: Encodable, Sendable, Equatable {
    var provider: String
    var `class`: String
    var generation: Int64
    var ok: Int32
    var failed: Int32
    var throttled: Int32
    var slow: Int32
    var unknown: Int32
    var latencies: [Int32]
    var asked: Int
    var vote: String?
    var why: String?
    var authoritative: Bool
    var hold_s: Double?
    var wants: Bool
    var recovered: Bool
    var results: [Result]
    /// The leases to renew, as a Postgres array.
    var held: String
    /// The leases that another worker may have if it asks.
    var idle: String
    var rate: Double?
    var blocked_s: Double?
    var quota_used: Int64?
    var quota_limit: Int64?
    var quota_resets_s: Double?

    struct Result: Encodable, Sendable, Equatable {
        var lease: Int64
        var passed: Bool?
    }
}

extension ProviderGate {
    /// Reports that the fleet has not heard yet, or should hear again.
    func entries(at now: Moment) -> [CircuitReport] {
        withState { state in
            var entries: [CircuitReport] = []
            for name in state.circuits.keys.sorted() {
                guard name != "*" else { continue }
                state.circuits[name]?.advance(to: now)
                state.circuits[name]?.askIfDue(at: now)
                guard let circuit = state.circuits[name] else { continue }
                var entry = CircuitReport(self.name, name, circuit, at: now)
                if entries.isEmpty, state.news != PaceNews() { entry.take(state.news, at: now) }
                // It is the same as last time, and nothing needs to be kept alive.
                if entry == state.sent[name], circuit.isQuiet { continue }
                entries.append(entry)
            }
            if entries.contains(where: { $0.rate != nil || $0.blocked_s != nil || $0.quota_limit != nil }) {
                state.news = PaceNews()
            }
            return entries
        }
    }

    /// The fleet has received this report.
    func told(_ entry: CircuitReport) {
        withState { state in
            state.circuits[entry.class]?.asked -= entry.asked
            state.circuits[entry.class]?.told(
                entry.results.map { FleetView.Result(lease: $0.lease, passed: $0.passed) }, askedForProbe: entry.wants)
            var sent = entry
            sent.asked = 0
            state.sent[entry.class] = sent
        }
    }

    /// The report did not arrive: the next one also carries what was learned about the pace.
    func untold(_ entry: CircuitReport, at now: Moment) {
        withState { state in
            state.news.rate = state.news.rate ?? entry.rate
            if let blocked = entry.blocked_s { state.news.blockedUntil = now + .seconds(blocked) }
            state.news.quotaUsed = state.news.quotaUsed ?? entry.quota_used
            state.news.quotaLimit = state.news.quotaLimit ?? entry.quota_limit
            state.news.quotaResets = state.news.quotaResets ?? entry.quota_resets_s.map { .seconds($0) }
        }
    }

    /// When the next probe will be due for callers that come back.
    var due: Moment? {
        withState { state in state.circuits.values.compactMap(\.mirror.due).min() }
    }

    func detach(at now: Moment) {
        withState { state in
            for name in state.circuits.keys { state.circuits[name]?.detach(at: now) }
        }
    }

    func adopt(_ row: FleetRow, ahead: Int64, at now: Moment) {
        withState { state in
            if state.circuits[row.class] == nil {
                state.circuits[row.class] = state.circuit(row.class, self.settings)
            }
            state.circuits[row.class]?.adopt(
                row.mirrorState(at: now, step: self.settings.rampStep), generation: row.generation,
                reason: row.reason, leases: row.leases, at: now)
            if let rate = row.rate, state.news.rate == nil { state.bucket.learn(rate: rate) }
            if let blocked = row.blocked, blocked > 0 { state.bucket.block(until: now + .seconds(blocked)) }
            if row.callers > 0 { state.bucket.dealt(.init(rank: row.rank, callers: row.callers), ahead: ahead) }
        }
    }
}

extension CircuitReport {
    init(_ provider: String, _ name: String, _ circuit: Circuit, at now: Moment) {
        let counts = circuit.window.counts
        let votes = circuit.votes(at: now)
        self.init(
            provider: provider, class: name, generation: circuit.mirror.generation, ok: counts.ok,
            failed: counts.failed, throttled: counts.throttled, slow: counts.slow, unknown: counts.unknown,
            latencies: circuit.window.latencies, asked: circuit.asked,
            vote: votes ? circuit.reason ?? "it opened" : nil, why: circuit.reason,
            authoritative: votes && circuit.isAuthoritative, hold_s: circuit.hold?.inSeconds,
            wants: circuit.mirror.wantsProbe, recovered: circuit.hasRecovered,
            results: circuit.mirror.results.map { Result(lease: $0.lease, passed: $0.passed) },
            held: Self.array(circuit.mirror.held(at: now)), idle: Self.array(circuit.mirror.idle(at: now)))
    }

    private static func array(_ leases: [Int64]) -> String {
        "{\(leases.map(String.init).joined(separator: ","))}"
    }

    mutating func take(_ news: ProviderGate.PaceNews, at now: Moment) {
        rate = news.rate
        blocked_s = news.blockedUntil.map { max(0, ($0 - now).inSeconds) }
        quota_used = news.quotaUsed
        quota_limit = news.quotaLimit
        quota_resets_s = news.quotaResets?.inSeconds
    }
}

extension Circuit {
    /// Nothing is under way that the fleet would have to hear about again.
    var isQuiet: Bool {
        guard asked == 0, mirror.results.isEmpty, mirror.out.isEmpty, mirror.lentCount == 0, !mirror.wantsProbe,
            case .closed = own.state
        else { return false }
        switch mirror.state {
        case .closed, .open: return true
        case .probing, .ramping, .forcedOpen, .forcedClosed, .observing: return false
        }
    }
}
