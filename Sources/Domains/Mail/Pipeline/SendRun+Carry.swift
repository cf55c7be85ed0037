import Faults
import Supervision
import Synchronization

extension SendRun {
    /// Makes the request until it is over or must rest, and records each attempt.
    func carry(
        _ given: SendRequest, _ messages: [RoutedLetter], by provider: any MailProvider, _ first: SendMachine,
        tried: [String: Fault]
    ) async throws {
        var request = given
        var machine = first
        let began = ContinuousClock.now
        func age() -> Duration { given.age + (ContinuousClock.now - began) }
        if let step = machine.begin(age: age()) {
            let answers = Array(repeating: SendOutcome.unknown(Self.lost), count: messages.count)
            return try await settle(step, answers, request, messages, by: provider, machine, took: nil, tried: tried)
        }
        while true {
            let asked = ContinuousClock.now
            let outcome = await call(provider, messages, request, isRetry: request.attempt > 1)
            let took = ContinuousClock.now - asked
            let step: SendMachine.Step
            let answers: [SendOutcome]
            switch outcome {
            case .answered(let told):
                answers = told
                step = machine.answered(told, age: age(), left: left)
            case .notCalled(let refusal):
                // Nothing has left: there is no attempt to record, and the request is free unless an earlier attempt is in doubt.
                step = machine.notCalled(refusal)
                return try await rest(
                    step, [], request, messages, by: provider, machine, took: nil, tried: tried)
            }
            guard case .again(let pause) = step else {
                return try await settle(
                    step, answers, request, messages, by: provider, machine, took: took, tried: tried)
            }
            let entries = zip(messages, answers).map { message, answer in
                MailStore.Entry(id: message.id, answer: answer, status: machine.isDoubtful ? "unknown" : nil)
            }
            try await service.recording(
                MailStore.Outcome(
                    batch: request.batch, attempt: request.attempt, entries: entries, took: took, requestEnd: .open))
            try await Task.sleep(for: pause)
            guard
                let next = try await service.table.again(
                    request.batch, attempt: request.attempt, holder: session, for: options.hold), next.what == .go
            else { return }  // another worker has it, or an event of the provider has settled it meanwhile
            request.attempt = next.attempt
        }
    }

    private static let lost = Fault(.unknown, "the answer to an earlier attempt was lost")

    private func settle(
        _ step: SendMachine.Step, _ answers: [SendOutcome], _ request: SendRequest, _ messages: [RoutedLetter],
        by provider: any MailProvider,
        _ machine: SendMachine, took: Duration?, tried: [String: Fault]
    ) async throws {
        guard case .ask = step, let id = request.providerID else {
            return try await rest(step, answers, request, messages, by: provider, machine, took: took, tried: tried)
        }
        let found: String?
        do {
            found = try await service.supervisor.call(provider.name, deadline: options.timeout) { call in
                try await provider.status(of: id, call: call)
            }
        } catch {
            // It cannot be asked now: the request stays as it is.
            let refusal = error as? CallRefusal
            let fault = (error as? Fault) ?? refusal?.fault ?? Fault(.transient, "\(error)")
            let doubtful = SendMachine.Step.rest(
                Array(repeating: .doubtful(fault, wait: refusal?.wait), count: messages.count))
            return try await rest(doubtful, answers, request, messages, by: provider, machine, took: took, tried: tried)
        }
        try await rest(
            machine.asked(found: found.map { _ in id }), answers, request, messages, by: provider, machine, took: took,
            tried: tried)
    }

    /// Records the results, and sends on what may go another way.
    private func rest(
        _ step: SendMachine.Step, _ answers: [SendOutcome], _ request: SendRequest, _ messages: [RoutedLetter],
        by provider: any MailProvider,
        _ machine: SendMachine, took: Duration?, tried: [String: Fault]
    ) async throws {
        guard case .rest(let resolutions) = step else { return }
        var elsewhere: [RoutedLetter] = []
        var alone: [RoutedLetter] = []
        var resent: [RoutedLetter] = []
        var reason: Fault?
        var entries: [MailStore.Entry] = []
        var requestEnd = MailStore.RequestEnd.settled
        for (index, (message, what)) in zip(messages, resolutions).enumerated() {
            var status: String?
            switch what {
            case .accepted:
                status = "accepted"
                end(message.id, .done)
            case .failed(let fault):
                status = "failed"
                end(message.id, .dead(fault.what))
            case .elsewhere(let fault):
                reason = fault
                elsewhere.append(message)
            case .later(let fault, let uses):
                if uses, isLast(message.id) {
                    status = "failed"
                    end(message.id, .dead(fault.what))
                } else {
                    end(
                        message.id,
                        uses
                            ? .retry(fault.what)
                            : .later(min(max(fault.wait ?? .seconds(1), .milliseconds(100)), .seconds(60))))
                }
            case .alone:
                requestEnd = .split
                alone.append(message)
            case .resend: resent.append(message)
            case .parked:
                status = "parked"
                requestEnd = .parked
                end(message.id, .done)
            case .doubtful(let fault, let wait):
                status = "unknown"
                requestEnd = .open
                let pause = min(max(fault.wait ?? .zero, request.age / 4, .seconds(2)), .seconds(600))
                end(message.id, .later(wait.map { min(max($0, .milliseconds(100)), .seconds(60)) } ?? pause))
            }
            if let answer = answers.indices.contains(index) ? answers[index] : Self.told(what) {
                entries.append(MailStore.Entry(id: message.id, answer: answer, status: status))
            }
        }
        await service.count(resolutions, by: provider.name)
        try await write(entries, request, messages, machine, took: took, requestEnd: requestEnd)
        if resolutions.contains(where: { if case .accepted = $0 { true } else { false } }) {
            await service.went(by: provider.name, insteadOf: tried[options.routes.chosen].flatMap(Self.switching))
        }
        if let reason, !elsewhere.isEmpty {
            try await dispatch(
                elsewhere, isUrgent: request.isUrgent, tried: tried.merging([provider.name: reason]) { $1 })
        }
        if !alone.isEmpty { try await dispatch(alone, isUrgent: request.isUrgent, tried: tried, alone: true) }
        if !resent.isEmpty {
            if left > .zero {
                try await dispatch(resent, isUrgent: request.isUrgent, tried: tried)
            } else {
                for message in resent { end(message.id, .later(.seconds(1))) }
            }
        }
    }

    private func write(
        _ entries: [MailStore.Entry], _ request: SendRequest, _ messages: [RoutedLetter], _ machine: SendMachine,
        took: Duration?,
        requestEnd: MailStore.RequestEnd
    ) async throws {
        // Nothing was called, and nothing is in doubt: the request is given up, and no attempt is recorded.
        let entries = entries.isEmpty && machine.isDoubtful ? [] : entries
        try await service.recording(
            MailStore.Outcome(
                batch: request.batch, attempt: request.attempt, entries: entries, took: took, requestEnd: requestEnd,
                traces: traces(of: entries.map(\.id))))
    }

    /// The answer that a resolution implies when it came from asking the provider for a status.
    private static func told(_ resolution: SendMachine.Resolution) -> SendOutcome? {
        switch resolution {
        case .accepted(let id): .accepted(id: id)
        case .parked(let fault): .unknown(fault)
        case .failed, .elsewhere, .later, .alone, .resend, .doubtful: nil
        }
    }

    /// A refusal that concerns more than this message: the provider is not called any more, by our choice or its own.
    private static func switching(_ fault: Fault) -> Fault? {
        switch fault.kind {
        case .quota: fault.code == "not called: reserve" ? nil : fault
        case .authentication: fault
        case .unavailable:
            fault.code?.hasPrefix("not called: ") == true && fault.code != "not called: ramping" ? fault : nil
        default: nil
        }
    }

    /// Non-urgent mail leaves the last tenth of a quota to urgent mail.
    private func reserved(_ provider: any MailProvider, count: Int) -> CallRefusal? {
        guard provider.name == options.routes.chosen, let all = options.quota,
            let quota = service.supervisor.quotaUsed(of: provider.name),
            quota.used + Int64(count) > all - max(1, all / 10)
        else { return nil }
        return CallRefusal(
            provider: provider.name, why: .reserve, reason: "\(quota.used) of \(all) are used",
            wait: quota.resets ?? .seconds(60))
    }

    /// An alarm waits for nothing. Only an open breaker may send it another way, if there is one.
    private func isVital(_ letters: [Letter], by provider: any MailProvider) -> Bool {
        guard let alarm = letters.first(where: \.isAlarm) else { return false }
        let able = ([options.routes.chosen] + options.routes.fallbacks).last { name in
            service.providers[name].map { $0.objection(to: alarm) == nil } ?? false
        }
        return able == provider.name || !service.supervisor.isOpen(provider.name)
    }

    private enum Outcome {
        case answered([SendOutcome])
        case notCalled(CallRefusal)
    }

    private func call(
        _ provider: any MailProvider, _ messages: [RoutedLetter], _ request: SendRequest, isRetry: Bool
    ) async -> Outcome {
        let letters = messages.map(\.letter)
        let known = traces(of: messages.map(\.id))
        let places = messages.compactMap { known[$0.id] }
        if !request.isUrgent, let refusal = reserved(provider, count: letters.count) { return .notCalled(refusal) }
        let place = TurnPlace(request.isUrgent ? nil : service.turns[provider.name])
        if !request.isUrgent, let turn = service.turns[provider.name] {
            guard await turn.enter() else {
                return .notCalled(
                    CallRefusal(provider: provider.name, why: .busy, reason: "the worker stops", wait: .zero))
            }
        }
        defer { place.leave() }
        let heard = Mutex<[SendOutcome]?>(nil)
        let key = request.key
        do {
            return .answered(
                try await service.supervisor.call(
                    provider.name, deadline: options.timeout, isRetry: isRetry,
                    isVital: isVital(letters, by: provider), places: places
                ) { call in
                    place.leave()
                    let answers = await provider.send(letters, key: key, call: call)
                    heard.withLock { $0 = answers }
                    // A fault that concerns the provider's health is thrown, so that it counts.
                    if let fault = answers.lazy.compactMap(\.fault).first(where: { $0.kind.bearing != .healthy }) {
                        throw fault
                    }
                    return answers
                })
        } catch let refusal as CallRefusal {
            return .notCalled(refusal)
        } catch {
            if let answers = heard.withLock({ $0 }), answers.count == letters.count { return .answered(answers) }
            let fault = Fault(
                .unknown, code: (error as? Fault)?.code, (error as? Fault)?.what ?? "the call was broken off",
                wait: (error as? Fault)?.wait)
            return .answered(Array(repeating: .unknown(fault), count: letters.count))
        }
    }
}
