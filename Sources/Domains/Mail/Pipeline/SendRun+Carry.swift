import Faults
import Supervision
import Synchronization

extension SendRun {
    /// Makes the request until it is over or has to rest, and writes each attempt down.
    func carry(
        _ given: SendRequest, _ parcels: [RoutedLetter], by carrier: any MailProvider, _ first: SendMachine,
        tried: [String: Fault]
    ) async throws {
        var request = given
        var course = first
        let began = ContinuousClock.now
        func age() -> Duration { given.age + (ContinuousClock.now - began) }
        if let step = course.begin(age: age()) {
            let answers = Array(repeating: SendOutcome.unknown(Self.lost), count: parcels.count)
            return try await settle(step, answers, request, parcels, by: carrier, course, took: nil, tried: tried)
        }
        while true {
            let asked = ContinuousClock.now
            let outcome = await call(carrier, parcels.map(\.letter), request, isRetry: request.attempt > 1)
            let took = ContinuousClock.now - asked
            let step: SendMachine.Step
            let answers: [SendOutcome]
            switch outcome {
            case .answered(let told):
                answers = told
                step = course.answered(told, age: age(), left: left)
            case .notCalled(let refusal):
                // Nothing has left: no attempt to write down, and the request is free unless an earlier one is in doubt.
                step = course.notCalled(refusal)
                return try await rest(
                    step, [], request, parcels, by: carrier, course, took: nil, tried: tried)
            }
            guard case .again(let pause) = step else {
                return try await settle(
                    step, answers, request, parcels, by: carrier, course, took: took, tried: tried)
            }
            let entries = zip(parcels, answers).map { parcel, answer in
                MailStore.Entry(id: parcel.id, answer: answer, status: course.isDoubtful ? "unknown" : nil)
            }
            try await post.recording(
                MailStore.Outcome(
                    batch: request.batch, attempt: request.attempt, entries: entries, took: took, fate: .open))
            try await Task.sleep(for: pause)
            guard
                let next = try await post.table.again(
                    request.batch, attempt: request.attempt, holder: session, for: options.hold), next.what == .go
            else { return }  // somebody else is at it, or it is settled by what the provider told meanwhile
            request.attempt = next.attempt
        }
    }

    private static let lost = Fault(.unknown, "the answer to an earlier attempt was lost")

    private func settle(
        _ step: SendMachine.Step, _ answers: [SendOutcome], _ request: SendRequest, _ parcels: [RoutedLetter],
        by carrier: any MailProvider,
        _ course: SendMachine, took: Duration?, tried: [String: Fault]
    ) async throws {
        guard case .ask = step, let id = request.providerID else {
            return try await rest(step, answers, request, parcels, by: carrier, course, took: took, tried: tried)
        }
        let found: String?
        do {
            found = try await post.supervisor.call(carrier.name, deadline: options.timeout) { call in
                try await carrier.status(of: id, call: call)
            }
        } catch {
            // Not now: it stays as it is.
            let fault = (error as? Fault) ?? (error as? CallRefusal)?.fault ?? Fault(.transient, "\(error)")
            let doubtful = SendMachine.Step.rest(Array(repeating: .doubtful(fault), count: parcels.count))
            return try await rest(doubtful, answers, request, parcels, by: carrier, course, took: took, tried: tried)
        }
        try await rest(
            course.asked(found: found.map { _ in id }), answers, request, parcels, by: carrier, course, took: took,
            tried: tried)
    }

    /// Writes down what came of it, and sends on what may go another way.
    private func rest(
        _ step: SendMachine.Step, _ answers: [SendOutcome], _ request: SendRequest, _ parcels: [RoutedLetter],
        by carrier: any MailProvider,
        _ course: SendMachine, took: Duration?, tried: [String: Fault]
    ) async throws {
        guard case .rest(let fates) = step else { return }
        var elsewhere: [RoutedLetter] = []
        var alone: [RoutedLetter] = []
        var anew: [RoutedLetter] = []
        var reason: Fault?
        var entries: [MailStore.Entry] = []
        var fate = MailStore.RequestEnd.settled
        for (index, (parcel, what)) in zip(parcels, fates).enumerated() {
            var status: String?
            switch what {
            case .accepted:
                status = "accepted"
                end(parcel.id, .done)
            case .failed(let fault):
                status = "failed"
                end(parcel.id, .dead(fault.what))
            case .elsewhere(let fault):
                reason = fault
                elsewhere.append(parcel)
            case .later(let fault, let uses):
                if uses, isLast(parcel.id) {
                    status = "failed"
                    end(parcel.id, .dead(fault.what))
                } else {
                    end(
                        parcel.id,
                        uses
                            ? .retry(fault.what)
                            : .later(min(max(fault.wait ?? .seconds(1), .milliseconds(100)), .seconds(60))))
                }
            case .alone:
                fate = .split
                alone.append(parcel)
            case .anew: anew.append(parcel)
            case .parked:
                status = "parked"
                fate = .parked
                end(parcel.id, .done)
            case .doubtful(let fault):
                status = "unknown"
                fate = .open
                let pause = min(max(fault.wait ?? .zero, request.age / 4, .seconds(2)), .seconds(600))
                end(parcel.id, .later(pause))
            }
            if let answer = answers.indices.contains(index) ? answers[index] : Self.told(what) {
                entries.append(MailStore.Entry(id: parcel.id, answer: answer, status: status))
            }
        }
        post.count(fates, by: carrier.name)
        try await write(entries, request, parcels, course, took: took, fate: fate)
        if fates.contains(where: { if case .accepted = $0 { true } else { false } }) {
            await post.went(by: carrier.name, insteadOf: tried[options.routes.chosen].flatMap(Self.switching))
        }
        if let reason, !elsewhere.isEmpty {
            try await dispatch(
                elsewhere, isUrgent: request.isUrgent, tried: tried.merging([carrier.name: reason]) { $1 })
        }
        if !alone.isEmpty { try await dispatch(alone, isUrgent: request.isUrgent, tried: tried, alone: true) }
        if !anew.isEmpty {
            if left > .zero {
                try await dispatch(anew, isUrgent: request.isUrgent, tried: tried)
            } else {
                for parcel in anew { end(parcel.id, .later(.seconds(1))) }
            }
        }
    }

    private func write(
        _ entries: [MailStore.Entry], _ request: SendRequest, _ parcels: [RoutedLetter], _ course: SendMachine,
        took: Duration?,
        fate: MailStore.RequestEnd
    ) async throws {
        // Not called, and nothing in doubt: the request is given up, and no attempt is written.
        let entries = entries.isEmpty && course.isDoubtful ? [] : entries
        try await post.recording(
            MailStore.Outcome(
                batch: request.batch, attempt: request.attempt, entries: entries, took: took, fate: fate))
    }

    /// What a fate says by itself, when the provider was asked what it knew.
    private static func told(_ fate: SendMachine.Resolution) -> SendOutcome? {
        switch fate {
        case .accepted(let id): .accepted(id: id)
        case .parked(let fault): .unknown(fault)
        case .failed, .elsewhere, .later, .alone, .anew, .doubtful: nil
        }
    }

    /// A refusal that stands for more than this message: the provider is not called any more, by us or by itself.
    private static func switching(_ fault: Fault) -> Fault? {
        switch fault.kind {
        case .quota: fault.code == "not called: reserve" ? nil : fault
        case .authentication: fault
        case .unavailable:
            fault.code?.hasPrefix("not called: ") == true && fault.code != "not called: ramping" ? fault : nil
        default: nil
        }
    }

    /// Mail that nobody waits for leaves the last tenth of a quota to what somebody does.
    private func reserved(_ carrier: any MailProvider, count: Int) -> CallRefusal? {
        guard carrier.name == options.routes.chosen, let all = options.quota,
            let quota = post.supervisor.quotaUsed(of: carrier.name),
            quota.used + Int64(count) > all - max(1, all / 10)
        else { return nil }
        return CallRefusal(
            provider: carrier.name, why: .reserve, reason: "\(quota.used) of \(all) are used",
            wait: quota.resets ?? .seconds(60))
    }

    /// An alarm waits for nobody. A breaker that is open may send it another way, if there is one.
    private func isVital(_ letters: [Letter], by carrier: any MailProvider) -> Bool {
        guard let alarm = letters.first(where: \.isAlarm) else { return false }
        let able = ([options.routes.chosen] + options.routes.fallbacks).last { name in
            post.carriers[name].map { $0.objection(to: alarm) == nil } ?? false
        }
        return able == carrier.name || !post.supervisor.isOpen(carrier.name)
    }

    private enum Outcome {
        case answered([SendOutcome])
        case notCalled(CallRefusal)
    }

    private func call(_ carrier: any MailProvider, _ letters: [Letter], _ request: SendRequest, isRetry: Bool) async
        -> Outcome
    {
        if !request.isUrgent, let refusal = reserved(carrier, count: letters.count) { return .notCalled(refusal) }
        let place = TurnPlace(request.isUrgent ? nil : post.turnstiles[carrier.name])
        if !request.isUrgent, let turnstile = post.turnstiles[carrier.name] {
            guard await turnstile.enter() else {
                return .notCalled(
                    CallRefusal(provider: carrier.name, why: .busy, reason: "the worker stops", wait: .zero))
            }
        }
        defer { place.leave() }
        let heard = Mutex<[SendOutcome]?>(nil)
        let key = request.key
        do {
            return .answered(
                try await post.supervisor.call(
                    carrier.name, deadline: options.timeout, isRetry: isRetry, isVital: isVital(letters, by: carrier)
                ) { call in
                    place.leave()
                    let answers = await carrier.send(letters, key: key, call: call)
                    heard.withLock { $0 = answers }
                    // What says something of the provider's health is thrown, so that it counts.
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
