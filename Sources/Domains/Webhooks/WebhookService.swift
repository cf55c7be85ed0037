import CloudEvents
package import Encryption
import Faults
package import Postgres
import Signatures
package import Telemetry
import Threads

/// The webhook service of a worker: makes deliveries from events, sends them, and records the results.
///
/// The actor keeps count of what is under way. A delivery itself is not isolated, so that many go out at the same time.
package actor WebhookService {
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
    private let bell: Wakeup
    /// Requests under way, by target.
    private var underWay: [String: Int] = [:]
    package private(set) var tally = Tally()
    private var complained: Set<String> = []
    /// Targets that this worker's settings forbid, and until when it does not look at them again.
    private var passedBy: [String: ContinuousClock.Instant] = [:]
    /// When it last looked for secrets to encrypt.
    private var sealed: ContinuousClock.Instant?

    /// - Parameter hearing: the process's LISTEN connection; nil: the service opens its own.
    package init(pool: Pool, hearing: NotificationHub? = nil, caller: WebhookClient, options: Options, log: Log) {
        table = WebhookStore(pool: pool)
        self.hearing = hearing ?? NotificationHub(pool.options)
        bell = Wakeup()
        sleepLock = WebhookSleepLock(self.hearing, bell: bell)
        self.caller = caller
        self.options = options
        self.log = log
    }

    /// Until cancelled. Requests under way then are broken off, and another worker sends them again under the same id.
    package func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { [hearing] in await hearing.run() }
            await RetryingLoop.run { loop in
                guard try await table.wait().targets > 0 else {
                    await bell.wait(for: max(options.poll, .seconds(2)))
                    return
                }
                if sealed.map({ .now - $0 > .seconds(60) }) ?? true {
                    try await seal()
                    sealed = .now
                }
                let passed = try await table.fanOut(500)
                let claimed = try await claim { batch in group.addTask { await self.carry(batch) } }
                loop.worked()
                if passed == 500 || claimed { return }
                let due = try await table.wait().seconds ?? .infinity
                // Another worker holds the due deliveries that were not claimed.
                let least = passedBy.isEmpty ? 0.05 : options.poll / .seconds(1)
                let pause = Duration.seconds(min(max(due, least), options.poll / .seconds(1)))
                await sleepLock.nap(pause) { [table] in try await table.fanOut(500) > 0 }
            } failed: { error in
                if Task.isCancelled { return .end }
                log.debug("webhooks wait for the database", [("error", "\(error)")])
                return .pause
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
        passedBy = passedBy.filter { $0.value > .now }
        let busy = underWay.filter { $0.value >= options.perTarget }.map(\.key) + passedBy.keys
        let free = options.slots - underWay.values.reduce(0, +)
        guard free > 0 else { return false }
        let token = Int64.random(in: 1 ... .max)
        let claimed = try await table.claim(
            token: token, most: free, perTarget: options.perTarget, batch: options.batch, busy: busy,
            hold: caller.timeout * 2 + .seconds(5), origin: caller.knowsOrigin ? caller.origin : nil)
        for batch in DeliveryBatch.of(claimed, token: token) {
            underWay[batch.webhook, default: 0] += 1
            start(batch)
        }
        return !claimed.isEmpty
    }

    private nonisolated func carry(_ batch: DeliveryBatch) async {
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
        await leave(batch.webhook)
    }

    private func leave(_ webhook: String) {
        let left = (underWay[webhook] ?? 1) - 1
        underWay[webhook] = left > 0 ? left : nil
        bell.fire()
    }

    private nonisolated func shake(_ batch: DeliveryBatch) async throws {
        let consent = await caller.ask(batch.webhook, at: batch.url)
        var wait: Duration?
        switch consent {
        case .retry(_, let asked):
            wait = RetrySchedule.wait(after: batch.tries, spread: .random(in: 0...1)).map { max($0, asked ?? .zero) }
        case .later(_, let pause): wait = pause
        case .allowed, .refused, .passed: break
        }
        if case .passed(let why) = consent { await passBy(batch.webhook, why) }
        let pause = wait
        try await heeded(batch.webhook) { [self] in
            try await table.consent(batch.webhook, consent, origin: caller.origin, wait: pause)
        }
    }

    private nonisolated func deliver(_ batch: DeliveryBatch) async throws {
        let secrets: [Webhook.Secret]
        do throws(SealError) {
            var opened: [Webhook.Secret] = []
            for stored in batch.secrets {
                opened.append(try SigningSecret.open(stored, of: batch.webhook, with: options.keys))
            }
            secrets = opened
        } catch {
            if await isFirstComplaint(of: batch.webhook) {
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
                signedWith: secrets, traces: letter.traces)
            try await record(batch, letter.items, verdict)
        }
    }

    private nonisolated func record(_ batch: DeliveryBatch, _ items: [DeliveryBatch.Item], _ verdict: TargetAnswer)
        async throws
    {
        await count(verdict, items.count)
        let waits = items.map { item -> Duration? in
            switch verdict {
            case .retry(let fault, _), .passed(let fault):
                return RetrySchedule.wait(after: item.attempts, spread: .random(in: 0...1)).map {
                    max($0, fault.wait ?? .zero)
                }
            case .delivered, .refused, .gone, .throttled, .later, .alone: return .zero
            }
        }
        if case .passed(let fault) = verdict { await passBy(batch.webhook, fault.what) }
        try await heeded(batch.webhook) { [self] in
            try await table.record(
                token: batch.token, batch.webhook, items.map(\.event), verdict, waits: waits)
        }
    }

    /// Only the worker whose write switched the webhook off logs it.
    private nonisolated func heeded(_ webhook: String, _ write: @escaping @Sendable () async throws -> String?)
        async throws
    {
        let why = try await uncancelled { try await write() }
        if let why { log.warning("a webhook was switched off", [("webhook.id", webhook), ("reason", why)]) }
    }

    private func count(_ verdict: TargetAnswer, _ events: Int) {
        switch verdict {
        case .delivered: tally.delivered += events
        case .retry, .alone: tally.failed += events
        case .refused, .gone: tally.refused += events
        case .throttled, .later, .passed: tally.throttled += events
        }
    }

    private func isFirstComplaint(of webhook: String) -> Bool { complained.insert(webhook).inserted }

    /// If only this worker's settings forbid the target, the target is not at fault: other workers may be allowed to call it, and decide.
    private func passBy(_ webhook: String, _ why: String) {
        passedBy[webhook] = .now + .seconds(60)
        if isFirstComplaint(of: webhook) {
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
