package import RoomKit
import Synchronization

/// What this worker has heard from stores. It also says when the database is to learn of refusals, since anybody can cause them: at most twice a
/// minute for each store and reason.
package struct StoreMessageTally: Sendable {
    package enum Outcome: String, CaseIterable, Sendable {
        case new, known, ignored, erased, refused, failed
    }

    package struct Refusal: Hashable, Sendable {
        package var store: String
        package var why: String

        package init(store: String, why: String) { (self.store, self.why) = (store, why) }
    }

    package static let stores = ["apple", "stripe"]
    package static let pause = Duration.seconds(30)

    private var counts: [String: [Outcome: Int]] = [:]
    private var untold: [Refusal: Int] = [:]
    private var toldAt: [Refusal: ContinuousClock.Instant] = [:]

    package init() {}

    package mutating func add(_ outcome: Outcome, of store: String) {
        counts[store, default: [:]][outcome, default: 0] += 1
    }

    /// Returns how many of these the database is to learn of now; nil: none yet.
    package mutating func refuse(_ refusal: Refusal, at now: ContinuousClock.Instant) -> Int? {
        add(.refused, of: refusal.store)
        let count = untold[refusal, default: 0] + 1
        if let last = toldAt[refusal], now - last < Self.pause {
            untold[refusal] = count
            return nil
        }
        untold[refusal] = nil
        toldAt[refusal] = now
        return count
    }

    package var gauges: [RoomGauge] {
        [
            RoomGauge(
                name: "subscription_messages_total", kind: "counter",
                help:
                    "Messages of stores, by what became of them. Refused ones were not the store's, or could not be checked.",
                values: Self.stores.flatMap { store in
                    Outcome.allCases.map { outcome in
                        (
                            labels: RoomGauge.labels([("store", store), ("outcome", outcome.rawValue)]),
                            value: Double(counts[store]?[outcome] ?? 0)
                        )
                    }
                })
        ]
    }
}

/// The tally behind its lock: requests come on many tasks at once, and none waits for another.
package final class SharedStoreMessageTally: Sendable {
    private let state = Mutex(StoreMessageTally())

    package init() {}

    package var gauges: [RoomGauge] { state.withLock { $0.gauges } }

    func add(_ outcome: StoreMessageTally.Outcome, of store: String) {
        state.withLock { $0.add(outcome, of: store) }
    }

    func refuse(_ refusal: StoreMessageTally.Refusal) -> Int? {
        state.withLock { $0.refuse(refusal, at: .now) }
    }
}
