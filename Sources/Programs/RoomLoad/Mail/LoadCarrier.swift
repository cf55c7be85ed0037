import CommandKit
import Faults
import FoundationEssentials
import Mail
import Supervision
import Synchronization

/// A provider without a network: takes messages after a while, or refuses them, and keeps the times.
final class LoadMailProvider: MailProvider {
    struct Seen: Sendable {
        /// When each message came, by its id.
        var came: [UUID: ContinuousClock.Instant] = [:]
        var requests: [ContinuousClock.Instant] = []
        var refusals: [ContinuousClock.Instant] = []
        /// Taken under more than one key.
        var twice = 0
    }

    let name: String
    let capabilities: Capabilities
    private let latency: Duration
    private let fault = Mutex<Fault?>(nil)
    private let state = Mutex(Seen())
    private let keys = Mutex<Set<String>>([])

    init(_ name: String, batch: Int, latency: Duration) {
        self.name = name
        self.latency = latency
        var capabilities = Capabilities()
        capabilities.batch = batch
        capabilities.keyHolds = .seconds(86_400)
        self.capabilities = capabilities
    }

    var seen: Seen { state.withLock { $0 } }
    var count: Int { state.withLock { $0.came.count } }
    func fail(_ fault: Fault?) { self.fault.withLock { $0 = fault } }
    func objection(to letter: Letter) -> String? { nil }

    func send(_ letters: [Letter], key: String, call: Call) async -> [SendOutcome] {
        let now = ContinuousClock.now
        if let fault = fault.withLock({ $0 }) {
            state.withLock { $0.refusals.append(now) }
            return letters.map { _ in .refused(fault) }
        }
        let isNew = keys.withLock { $0.insert(key).inserted }
        state.withLock { state in
            state.requests.append(now)
            guard isNew else { return }
            for letter in letters {
                if state.came.updateValue(now, forKey: letter.id) != nil { state.twice += 1 }
            }
        }
        try? await Task.sleep(for: latency)  // a cancelled caller has sent it all the same
        return letters.map { .accepted(id: $0.id.uuidString) }
    }

    func status(of id: String, call: Call) async throws(Fault) -> String? { nil }
}
