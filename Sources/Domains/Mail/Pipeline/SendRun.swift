import Faults
import Supervision
import Synchronization
import Telemetry
import Traces

/// One call by a worker: some messages on their way. A message's ending may be noted several times; the last one counts.
final class SendRun: Sendable {
    let service: MailService
    let session: Int64
    let began: ContinuousClock.Instant
    /// With the present roll-out.
    let routes: Routes
    private let state = Mutex(State())

    private struct State {
        var indices: [String: [Int]] = [:]
        var endings: [Int: MailJobEnd] = [:]
        var last: Set<String> = []
        var traces: [String: TraceContext] = [:]
    }

    init(service: MailService, session: Int64, began: ContinuousClock.Instant, routes: Routes) {
        self.routes = routes
        self.service = service
        self.session = session
        self.began = began
    }

    var options: MailOptions { service.options }
    /// The time left for this run.
    var left: Duration { options.total - (ContinuousClock.now - began) }

    func note(_ id: String, index: Int, _ job: MailJob) {
        state.withLock { state in
            state.indices[id, default: []].append(index)
            if job.isLast { state.last.insert(id) }
            if let trace = job.trace { state.traces[id] = trace }
        }
    }

    func isLast(_ id: String) -> Bool { state.withLock { $0.last.contains(id) } }

    /// The places in traces of these messages' runs.
    func traces(of ids: [String]) -> [String: TraceContext] {
        state.withLock { state in state.traces.isEmpty ? [:] : state.traces.filter { ids.contains($0.key) } }
    }

    func end(_ index: Int, _ ending: MailJobEnd) { state.withLock { $0.endings[index] = ending } }

    func end(_ id: String, _ ending: MailJobEnd) {
        state.withLock { state in
            for index in state.indices[id] ?? [] { state.endings[index] = ending }
        }
    }

    /// A job without a recorded ending comes back in a second.
    func ending(_ index: Int) -> MailJobEnd { state.withLock { $0.endings[index] } ?? .later(.seconds(1)) }

    /// Sends messages that have certainly not been sent. The providers in `tried` have refused each of them.
    func dispatch(
        _ messages: [RoutedLetter], isUrgent: Bool, tried: [String: Fault] = [:], alone: Bool = false
    ) async throws {
        guard !messages.isEmpty else { return }
        var requests: [(provider: any MailProvider, messages: [RoutedLetter])] = []
        var open: [String: Int] = [:]
        for message in messages {
            guard let provider = try await choose(message, tried: tried) else { continue }
            let isAlone = alone || !message.letter.attachments.isEmpty && !provider.capabilities.batchesAttachments
            let most = isAlone ? 1 : provider.capabilities.batch
            if most > 1, let index = open[provider.name], requests[index].messages.count < most {
                requests[index].messages.append(message)
            } else {
                if most > 1 { open[provider.name] = requests.count }
                requests.append((provider, [message]))
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            var under = 0
            for request in requests {
                if under >= options.bulkRequests {
                    try await group.next()
                    under -= 1
                }
                under += 1
                group.addTask {
                    try await self.hand(request.messages, to: request.provider, isUrgent: isUrgent, tried: tried)
                }
            }
            try await group.waitForAll()
        }
    }

    /// nil: no provider can be called, and the message has its ending.
    private func choose(_ message: RoutedLetter, tried: [String: Fault]) async throws -> (any MailProvider)? {
        let address = message.letter.to.first?.address.lowercased() ?? ""
        let inTurn = routes.order(id: message.id, address: address)
        let spare = routes.spare(address: address)
        let order = inTurn + [spare].compactMap { $0 }
        var objections: [String] = []
        for name in order {
            // Outside its share the chosen provider sends only what no other could ever send.
            if name == spare, inTurn.contains(where: { tried[$0] != nil }) { continue }
            guard let provider = service.providers[name] else { continue }
            if name == "supabase", !message.mayUseSupabase {
                objections.append("supabase: its own token would make the link worthless")
            } else if message.wasUnknown, !provider.capabilities.mayFollowUnknown {
                objections.append("\(name): an earlier attempt may have come through, and its link would be worthless")
            } else if let objection = provider.objection(to: message.letter) {
                objections.append("\(name): \(objection)")
            } else if tried[name] == nil {
                if name == spare { await service.warnOfSpare(name, objections) }
                return provider
            }
        }
        if let fault = order.lazy.compactMap({ tried[$0] }).first {
            // Every provider that could send it has refused for now.
            let wait = order.compactMap { tried[$0]?.wait }.min() ?? .seconds(10)
            service.log.debug("no provider takes a message now", [("error", fault.description)])
            end(message.id, .later(min(max(wait, .milliseconds(200)), .seconds(60))))
        } else {
            let fault = Fault(
                .unsupported,
                objections.isEmpty
                    ? "no provider of mail is configured"
                    : "no provider can send it: \(objections.joined(separator: "; "))")
            try await service.table.fail(message.id, fault)
            end(message.id, .dead(fault.what))
        }
        return nil
    }

    /// A new request: frozen first, then made.
    private func hand(
        _ messages: [RoutedLetter], to provider: any MailProvider, isUrgent: Bool, tried: [String: Fault]
    ) async throws {
        let opened = try await open(messages.map(\.id), by: provider.name)
        var going: [RoutedLetter] = []
        var other: Set<String> = []
        for (message, one) in zip(messages, opened) {
            switch one.what {
            case .go: going.append(message)
            case .fewer:
                going.append(message)
                other.insert(message.id)
            case .wait: end(message.id, .later(.seconds(max(0.1, one.seconds))))
            case .settled: end(message.id, .done)
            }
        }
        guard let first = opened.first(where: { $0.what == .go || $0.what == .fewer }) else { return }
        if !other.isEmpty {
            let read = try await service.table.messages(going.map(\.id))
            // A message was erased in between: the request is taken over later like any other abandoned one.
            guard read.count == going.count else { return }
            going = read
        }
        let machine = SendMachine(
            rules: options.sendRules, count: going.count, holds: provider.capabilities.keyHolds, canAsk: false,
            mayRepeat: going.allSatisfy(\.mayRepeat), isDoubtful: false)
        let request = SendRequest(
            batch: first.batch, key: first.key, attempt: 1, age: .zero, providerID: nil, isUrgent: isUrgent)
        try await carry(request, going, by: provider, machine, tried: tried)
    }

    private func open(_ ids: [String], by provider: String) async throws -> [MailStore.Opened] {
        if ids.count == 1, let opening = service.opening[provider] {
            return [try await opening(MailService.Claim(id: ids[0], holder: session))]
        }
        return try await service.table.open(ids, alone: false, by: provider, holder: session, options)
    }

    /// An abandoned request: it continues unchanged, through the same provider.
    func resume(_ batch: Int64) async throws {
        guard let found = try await service.table.again(batch, attempt: nil, holder: session, for: options.hold) else {
            return
        }
        switch found.what {
        case .settled: return  // its messages come back in a second and are ended then
        case .wait:
            for id in found.messages { end(id, .later(.seconds(max(0.2, found.seconds)))) }
            return
        case .go: break
        }
        let messages = try await service.table.messages(found.messages)
        guard let provider = service.providers[found.provider], messages.count == found.messages.count else {
            let fault = Fault(
                .unknown,
                service.providers[found.provider] == nil
                    ? "nobody knows whether \(found.provider) took it, and that is not configured any more"
                    : "nobody knows whether it was taken, and a part of the request was erased since")
            let entries = found.messages.map { MailStore.Entry(id: $0, answer: .unknown(fault), status: "parked") }
            try await service.recording(
                MailStore.Outcome(
                    batch: batch, attempt: found.attempt, entries: entries, took: nil, requestEnd: .parked))
            for id in found.messages { end(id, .done) }
            return
        }
        let machine = SendMachine(
            rules: options.sendRules, count: messages.count, holds: provider.capabilities.keyHolds,
            canAsk: provider.capabilities.answersLater && found.providerID != nil, mayRepeat: found.mayRepeat,
            isDoubtful: true)
        let request = SendRequest(
            batch: batch, key: found.key, attempt: found.attempt, age: found.age, providerID: found.providerID,
            isUrgent: messages.contains(where: \.isUrgent))
        try await carry(request, messages, by: provider, machine, tried: [:])
    }
}

/// A provider's request on its way.
struct SendRequest: Sendable {
    var batch: Int64
    var key: String
    var attempt: Int32
    /// The time since its first attempt, when we took it over.
    var age: Duration
    var providerID: String?
    var isUrgent: Bool
}
