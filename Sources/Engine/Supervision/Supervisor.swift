import Faults
package import Postgres
import Synchronization
package import Telemetry
import Threads
package import Traces

/// Every call from a room to a provider goes through the supervisor. It decides in memory, call by call; it agrees with the rest of the
/// fleet once a second, and goes on alone without a database.
package actor Supervisor {
    package struct Options: Sendable {
        package struct Provider: Sendable, Equatable {
            package var slots: Int?
            /// Calls a second of the whole fleet.
            package var rate: Double?
            package var timeout: Duration?

            package init(slots: Int? = nil, rate: Double? = nil, timeout: Duration? = nil) {
                self.slots = slots
                self.rate = rate
                self.timeout = timeout
            }
        }

        package var breaker = Breaker.Settings()
        package var quorum = 2
        package var retryShare = 0.2
        package var slots = 64
        /// By provider, or by the part of a provider's name before the colon.
        package var providers: [String: Provider] = [:]
        /// nil: this process is on its own.
        package var database: ConnectionOptions?
        /// The process's LISTEN connection; nil: the supervisor opens its own once a provider is called.
        package var hearing: NotificationHub?
        package var name = "?"
        /// Records a span for each call that belongs to a trace; nil: no traces are recorded.
        package var tracer: Tracer?
        /// This machine's steady clock.
        package var now: @Sendable () -> Moment = { .now }

        package init() {}
    }

    nonisolated let options: Options
    nonisolated let log: Log
    nonisolated let hearing: NotificationHub?
    nonisolated let wake = Wakeup()
    private nonisolated let gates = Mutex<[String: ProviderGate]>([:])
    nonisolated let reads = Coalescer<String, any Sendable>()
    nonisolated let flags = Mutex<FlagTable>(FlagTable())
    /// This process's number in the fleet.
    nonisolated let member = Int64.random(in: 1 ... .max)
    /// nil: this process is on its own.
    nonisolated let link: KeptConnection?
    var lastAnswer: Moment?
    var hasAsked = false
    var clock = FleetClock()
    var lastTidy: Moment
    var isAway = false

    package init(_ options: Options, log: Log) {
        self.options = options
        self.log = log
        lastTidy = options.now()
        link = options.database.map { KeptConnection($0.urgent(.claims), name: "mr-super") }
        hearing = options.hearing ?? options.database.map { NotificationHub($0) }
        hearing?.heed(["millrace_providers"]) { [wake] news in
            if news != .ended { wake.fire() }
        }
    }

    /// How much of its quota is used, by the provider's last answer, and when the quota's next period begins.
    package nonisolated func quotaUsed(of provider: String) -> (used: Int64, resets: Duration?)? {
        gate(of: provider).quotaUsed(at: now)
    }

    nonisolated var now: Moment { options.now() }

    /// Calls `body` if the provider may be called now. `deadline` bounds both the wait for its turn and the call, which is cancelled at the
    /// deadline.
    ///
    /// - Parameters:
    ///   - isVital: A person's safety may depend on it: it is called now, and its outcome counts like any other.
    ///   - places: The places in traces that it is made for, where it is made for several; nil: the present one.
    /// - Throws: a ``CallRefusal`` when the call was not made; otherwise what `body` throws, which counts if it is a ``Fault``.
    package nonisolated func call<Value: Sendable>(
        _ provider: String, class name: String = "default", deadline: Duration? = nil, isRetry: Bool = false,
        isVital: Bool = false, places: [TraceContext]? = nil, _ body: @Sendable (Call) async throws -> Value
    ) async throws -> Value {
        let gate = gate(of: provider)
        let limit = deadline ?? gate.limits.timeout
        let until = limit.map { now + $0 }
        if isVital || !isRetry {
            gate.earn()
        } else if !gate.spendRetry(at: now) {
            throw CallRefusal(provider: provider, why: .retries, wait: RetryBudget.pause)
        }
        let permit = isVital ? gate.enterVital(name, at: now) : try await enter(gate, name, until: until)
        let began = now
        let call = Call(gate: gate, deadline: until, wake: wake, supervisor: self)
        do {
            let value = try await traced(provider, name, isRetry: isRetry, places) { () async throws -> Value in
                guard let until else { return try await body(call) }
                return try await within(until, call, body)
            }
            finish(gate, name, permit, nil, began)
            return value
        } catch let fault as Fault {
            finish(gate, name, permit, fault, began)
            throw fault
        } catch {
            finish(gate, name, permit, Fault(error is CancellationError ? .cancelled : .internal, "\(error)"), began)
            throw error
        }
    }

    /// How many callers wait for a read.
    package nonisolated var waitingForReads: Int { reads.waiting }

    /// One read for all callers that want the same thing at the same time: a token, a template, a flag, a probe. Never for a call that
    /// changes something.
    ///
    /// - Parameter key: Names the kind of thing and the thing: `flag:mail.rollout`.
    package nonisolated func read<Value: Sendable>(
        _ key: String, _ load: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let found = try await reads.value(for: key) { try await load() }
        guard let value = found as? Value else {
            throw Fault(.internal, "two things of different types are read as \(key)")
        }
        return value
    }

    private nonisolated func enter(_ gate: ProviderGate, _ name: String, until: Moment?) async throws -> Permit {
        var hasSlot = false
        var place: Moment?
        while true {
            switch gate.enter(name, at: now, hasSlot: &hasSlot, place: place, until: until) {
            case .go(let permit): return permit
            case .line(let ticket):
                hasSlot = await gate.waitInLine(ticket, for: until.map { max(.zero, $0 - now) })
                if !hasSlot {
                    try Task.checkCancellation()
                    throw CallRefusal(provider: gate.name, why: .busy, wait: options.breaker.comeBack)
                }
                if Task.isCancelled {
                    gate.leave(hasSlot: true, place: nil)
                    throw CancellationError()
                }
            case .pace(let turn):
                place = turn
                do {
                    try await Task.sleep(for: turn - now, tolerance: .zero)
                } catch {
                    gate.leave(hasSlot: hasSlot, place: place)
                    throw error
                }
            case .refused(let why, let until, let reason, let asks):
                if let place { gate.leave(hasSlot: false, place: place) }
                if asks { wake.fire() }
                throw CallRefusal(provider: gate.name, why: why, reason: reason, wait: max(.zero, until - now))
            }
        }
    }

    private nonisolated func finish(
        _ gate: ProviderGate, _ name: String, _ permit: Permit, _ fault: Fault?, _ began: Moment
    ) {
        let now = now
        let tells = gate.record(
            name, permit, fault?.kind, code: fault?.code, hold: fault?.wait, took: now - began, at: now)
        if tells { wake.fire() }
    }

    private nonisolated func within<Value: Sendable>(
        _ until: Moment, _ call: Call, _ body: @Sendable (Call) async throws -> Value
    ) async throws -> Value {
        try await withoutActuallyEscaping(body) { body in
            try await withThrowingTaskGroup(of: Value?.self) { group in
                group.addTask { try await body(call) }
                group.addTask {
                    try await Task.sleep(for: max(.zero, until - self.now))
                    return nil
                }
                defer { group.cancelAll() }
                guard let first = try await group.next(), let value = first else {
                    throw Fault(.timeout, "no answer in time")
                }
                return value
            }
        }
    }

    nonisolated func gate(of provider: String) -> ProviderGate {
        gates.withLock { gates in
            if let gate = gates[provider] { return gate }
            let own = options.providers[provider]
            let family = provider.firstIndex(of: ":").flatMap { options.providers[String(provider[..<$0])] }
            var limits = ProviderGate.Limits()
            limits.slots = own?.slots ?? family?.slots ?? options.slots
            limits.rate = own?.rate ?? family?.rate
            limits.timeout = own?.timeout ?? family?.timeout
            limits.retryShare = options.retryShare
            let gate = ProviderGate(provider, limits: limits, settings: options.breaker)
            gates[provider] = gate
            return gate
        }
    }

    nonisolated var allDesks: [ProviderGate] { gates.withLock { Array($0.values) } }

    /// Whether a flag is on for a key, as this process last heard. An unknown flag is off.
    package nonisolated func isOn(_ flag: String, for key: String) -> Bool {
        let (found, isFirst): (Flag?, Bool) = flags.withLock { table in
            defer { table.isWanted = true }
            return (table.flags[flag], !table.isWanted)
        }
        if isFirst { wake.fire() }
        return found?.isOn(key) ?? false
    }
}

struct FlagTable: Sendable {
    var flags: [String: Flag] = [:]
    /// Flags are fetched only after the first question about one.
    var isWanted = false
}

/// How far the fleet's clock is ahead of ours, judged by the fastest of the last answers.
struct FleetClock: Sendable {
    private(set) var ahead: Int64 = 0
    private var best = Int64.max

    mutating func heard(_ fleet: Int64, sent: Moment, received: Moment) {
        let trip = received.nanoseconds - sent.nanoseconds
        best = best == .max ? .max : best + best / 16 + 1000
        guard trip <= best else { return }
        best = trip
        ahead = fleet - (sent.nanoseconds + trip / 2)
    }
}

/// A call that was let through; the caller's side of it.
package struct Call: Sendable {
    let gate: ProviderGate
    /// The caller should give up by then, if it can.
    package let deadline: Moment?
    let wake: Wakeup
    let supervisor: Supervisor

    /// What the call needs and others need as well, such as a token, read once for all: ``Supervisor/read(_:_:)``.
    package func read<Value: Sendable>(
        _ key: String, _ load: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await supervisor.read(key, load)
    }

    /// Takes what the answer's headers say about the pace, for good and bad answers alike.
    package func heard(_ notes: RateNotes) {
        if gate.heard(notes, at: supervisor.now) { wake.fire() }
    }

    package func heardQuota(used: Int64?, limit: Int64?, resets: Duration?) {
        gate.heardQuota(used: used, limit: limit, resets: resets, at: supervisor.now)
    }
}
