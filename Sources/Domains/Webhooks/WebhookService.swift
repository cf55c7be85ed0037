import CloudEvents
package import Encryption
import Faults
package import Postgres
import Signatures
import Synchronization
package import Telemetry
import Threads

/// The webhook service of a worker: makes deliveries from events, sends them, and records the results.
package final class WebhookService: Sendable {
    package struct Options: Sendable {
        /// How many requests may be under way at once, to all targets and to one.
        package var slots = 128
        package var perTarget = 8
        /// Events in one request of a target that takes lists.
        package var batch = 100
        /// How often to look when no notification comes.
        package var poll = Duration.seconds(1)
        package var keys = Keyring.empty

        package init() {}
    }

    /// Since the start, for metrics.
    package struct Tally: Sendable, Equatable {
        package var delivered = 0
        package var failed = 0
        package var throttled = 0
        package var refused = 0
    }

    let table: WebhookStore
    let caller: WebhookClient
    let options: Options
    let log: Log
    private let hearing: NotificationHub
    private let sleepLock: WebhookSleepLock
    private let bell: Signal
    private let state = Mutex(State())

    private struct State {
        /// Requests under way, by target.
        var underWay: [String: Int] = [:]
        var tally = Tally()
        var complained: Set<String> = []
        /// Targets that this worker's settings forbid, and until when it does not look at them again.
        var passedBy: [String: ContinuousClock.Instant] = [:]
    }

    /// - Parameter hearing: the process's LISTEN connection; nil: the service opens its own.
    package init(pool: Pool, hearing: NotificationHub? = nil, caller: WebhookClient, options: Options, log: Log) {
        table = WebhookStore(pool: pool)
        self.hearing = hearing ?? NotificationHub(pool.options)
        bell = Signal()
        sleepLock = WebhookSleepLock(self.hearing, bell: bell)
        self.caller = caller
        self.options = options
        self.log = log
    }

    package var tally: Tally { state.withLock { $0.tally } }

    /// Until cancelled. Requests under way then are broken off, and another worker sends them again under the same id.
    package func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.hearing.run() }
            var backoff = Backoff()
            var sealed: ContinuousClock.Instant?
            while !Task.isCancelled {
                do {
                    guard try await table.wait().targets > 0 else {
                        await bell.wait(for: max(options.poll, .seconds(2)))
                        continue
                    }
                    if sealed.map({ .now - $0 > .seconds(60) }) ?? true {
                        try await seal()
                        sealed = .now
                    }
                    let passed = try await table.fanOut(500)
                    let claimed = try await claim { batch in group.addTask { await self.carry(batch) } }
                    backoff.reset()
                    if passed == 500 || claimed { continue }
                    let due = try await table.wait().seconds ?? .infinity
                    // Another worker holds the due deliveries that were not claimed.
                    let least = isPassingBy ? options.poll / .seconds(1) : 0.05
                    let pause = Duration.seconds(min(max(due, least), options.poll / .seconds(1)))
                    await sleepLock.nap(pause) { try await self.table.fanOut(500) > 0 }
                } catch {
                    guard !Task.isCancelled else { break }
                    log.debug("webhooks wait for the database", [("error", "\(error)")])
                    try? await Task.sleep(for: backoff.next())
                }
            }
            group.cancelAll()
        }
        await sleepLock.close()
    }

    /// Sends everything that is due now, once; for tests and tools.
    package func runOnce() async throws {
        try await seal()
        while try await table.fanOut(500) == 500 {}
        try await withThrowingDiscardingTaskGroup { group in
            _ = try await claim { batch in group.addTask { await self.carry(batch) } }
        }
    }

    /// True when the claim filled all free slots: there may be more.
    private func claim(_ start: (DeliveryBatch) -> Void) async throws -> Bool {
        let (free, busy) = state.withLock { state in
            state.passedBy = state.passedBy.filter { $0.value > .now }
            let busy = state.underWay.filter { $0.value >= options.perTarget }.map(\.key) + state.passedBy.keys
            return (options.slots - state.underWay.values.reduce(0, +), busy)
        }
        guard free > 0 else { return false }
        let token = Int64.random(in: 1 ... .max)
        let claimed = try await table.claim(
            token: token, most: free, perTarget: options.perTarget, batch: options.batch, busy: busy,
            hold: caller.timeout * 2 + .seconds(5), origin: caller.knowsOrigin ? caller.origin : nil)
        for batch in DeliveryBatch.of(claimed, token: token) {
            state.withLock { $0.underWay[batch.webhook, default: 0] += 1 }
            start(batch)
        }
        return !claimed.isEmpty
    }

    private func carry(_ batch: DeliveryBatch) async {
        // The result is recorded even when we stop: otherwise the event would be sent again.
        do {
            if batch.isHandshake {
                try await shake(batch)
            } else {
                try await deliver(batch)
            }
        } catch {
            log.warning(
                "cannot record the result of a webhook; it is sent again under the same id",
                [("webhook.id", batch.webhook), ("error", "\(error)")])
        }
        state.withLock { state in
            let left = (state.underWay[batch.webhook] ?? 1) - 1
            state.underWay[batch.webhook] = left > 0 ? left : nil
        }
        bell.fire()
    }

    private func shake(_ batch: DeliveryBatch) async throws {
        let consent = await caller.ask(batch.webhook, at: batch.url)
        var wait: Duration?
        if case .retry(_, let asked) = consent {
            wait = RetrySchedule.wait(after: batch.tries, spread: .random(in: 0...1)).map { max($0, asked ?? .zero) }
        }
        if case .passed(let why) = consent { passBy(batch.webhook, why) }
        let pause = wait
        try await heeded(batch.webhook) { [self] in
            try await table.consent(batch.webhook, consent, origin: caller.origin, wait: pause)
        }
    }

    private func deliver(_ batch: DeliveryBatch) async throws {
        let secrets: [Webhook.Secret]
        do throws(SealError) {
            var opened: [Webhook.Secret] = []
            for stored in batch.secrets {
                opened.append(try SigningSecret.open(stored, of: batch.webhook, with: options.keys))
            }
            secrets = opened
        } catch {
            if state.withLock({ $0.complained.insert(batch.webhook).inserted }) {
                log.warning(
                    "cannot read a webhook's secret; leaving it to other workers",
                    [("webhook.id", batch.webhook), ("error", "\(error)")])
            }
            return try await record(batch, batch.items, .later(.seconds(60), "a worker lacks the key of its secret"))
        }
        let (ready, faulty) = batch.messages
        for (item, fault) in faulty { try await record(batch, [item], .refused(fault, code: 0)) }
        for letter in ready {
            let verdict = await caller.deliver(
                letter.message, count: letter.items.count, id: letter.id, to: batch.webhook, at: batch.url,
                signedWith: secrets)
            try await record(batch, letter.items, verdict)
        }
    }

    private func record(_ batch: DeliveryBatch, _ items: [DeliveryBatch.Item], _ verdict: TargetAnswer) async throws {
        count(verdict, items.count)
        let waits = items.map { item -> Duration? in
            switch verdict {
            case .retry(let fault, _), .passed(let fault):
                return RetrySchedule.wait(after: item.attempts, spread: .random(in: 0...1)).map {
                    max($0, fault.wait ?? .zero)
                }
            case .delivered, .refused, .gone, .throttled, .later, .alone: return .zero
            }
        }
        if case .passed(let fault) = verdict { passBy(batch.webhook, fault.what) }
        try await heeded(batch.webhook) { [self] in
            try await table.record(
                token: batch.token, batch.webhook, items.map(\.event), verdict, waits: waits)
        }
    }

    /// Only the worker whose write switched the webhook off logs it.
    private func heeded(_ webhook: String, _ write: @escaping @Sendable () async throws -> String?) async throws {
        let why = try await Task { try await write() }.value  // cancelled or not, it has happened
        if let why { log.warning("a webhook was switched off", [("webhook.id", webhook), ("reason", why)]) }
    }

    private func count(_ verdict: TargetAnswer, _ events: Int) {
        state.withLock { state in
            switch verdict {
            case .delivered: state.tally.delivered += events
            case .retry, .alone: state.tally.failed += events
            case .refused, .gone: state.tally.refused += events
            case .throttled, .later, .passed: state.tally.throttled += events
            }
        }
    }

    private var isPassingBy: Bool { state.withLock { !$0.passedBy.isEmpty } }

    /// If only this worker's settings forbid the target, the target is not at fault: other workers may be allowed to call it, and decide.
    private func passBy(_ webhook: String, _ why: String) {
        let isNew = state.withLock { state in
            state.passedBy[webhook] = .now + .seconds(60)
            return state.complained.insert(webhook).inserted
        }
        if isNew {
            log.warning(
                "this worker's settings forbid a webhook's target; leaving it to other workers",
                [("webhook.id", webhook), ("reason", why)])
        }
    }

    /// Encrypts secrets that came by SQL, or that an older key encrypted.
    private func seal() async throws {
        guard let first = options.keys.keys.first else { return }
        for stored in try await table.unsealed(by: first.id) {
            do throws(SealError) {
                let sealed = try SigningSecret.reseal(stored.secret, of: stored.webhook, with: options.keys)
                try? await table.seal(stored, sealed)  // the next look finds it again
            } catch {
                log.warning(
                    "cannot encrypt a webhook's secret with the current key",
                    [("webhook.id", stored.webhook), ("error", "\(error)")])
            }
        }
    }
}
