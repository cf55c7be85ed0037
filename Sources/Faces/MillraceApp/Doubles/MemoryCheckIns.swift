import Foundation

struct MemoryCheckIns: CheckInClient {
    let memory: MemoryContext

    func checkIn(at: Date, place: CheckInPlace?) async throws -> Submission<Date> {
        let (person, clock) = (memory.person, memory.clock)
        return try await memory.gateway.submit("check_in") { state in
            let expiry = try state.checkIn(person, at: state.byOurClock(at, clock))
            state.keep(place, of: person, clock)
            return expiry
        }
    }

    func arm(_ watch: WatchSettings) async throws -> Submission<Date> {
        let person = memory.person
        return try await memory.gateway.submit("check_in_arm") { state in
            guard !state.reachable(person).isEmpty else {
                throw AppError(
                    .conflict, "no contact of this person has a verified address", field: "person",
                    hint: "Name one with check_in_contact; it counts once the contact has agreed through that address.")
            }
            state.endAlarm(of: person)
            let expiry = state.now().addingTimeInterval(watch.every.inSeconds)
            state.watches[person] = MemoryState.Watch(
                settings: watch, state: "armed", lastCheckedIn: state.now(), expiration: expiry)
            state.changed(.checkIns, person, "armed", for: [person])
            return expiry
        }
    }

    func setInterval(_ interval: Duration) async throws -> Submission<Date?> {
        let person = memory.person
        return try await memory.gateway.submit("check_in_set_interval") { state in
            var watch = state.watches[person] ?? MemoryState.unarmed
            watch.settings.every = interval
            if watch.state != "disarmed" {
                watch.expiration = max(
                    watch.lastCheckedIn.addingTimeInterval(interval.inSeconds),
                    state.now().addingTimeInterval(watch.settings.grace.inSeconds))
            }
            state.watches[person] = watch
            return watch.expiration
        }
    }

    func pause(until: Date) async throws -> Submission<Date> {
        let (person, clock) = (memory.person, memory.clock)
        return try await memory.gateway.submit("check_in_pause") { state in
            var watch = try state.watch(of: person)
            let until = state.byOurClock(until, clock)
            guard until > state.now() else { throw AppError(.invalid, "until lies in the past", field: "until") }
            guard watch.state != "disarmed" else {
                throw AppError(.conflict, "the watch is disarmed", field: "person")
            }
            let expiry = until.addingTimeInterval(watch.settings.every.inSeconds)
            (watch.state, watch.pausedUntil, watch.expiration) = ("paused", until, expiry)
            state.watches[person] = watch
            return expiry
        }
    }

    func disarm(reason: String?) async throws -> Submission<Bool> {
        let person = memory.person
        return try await memory.gateway.submit("check_in_disarm") { state in
            var watch = try state.watch(of: person)
            guard watch.state != "disarmed" else { return false }
            (watch.state, watch.expiration, watch.pausedUntil) = ("disarmed", nil, nil)
            state.watches[person] = watch
            return true
        }
    }

    func state() async throws -> CheckInState? {
        let person = memory.person
        return try await memory.gateway.ask("check_in_show") { state in
            let watch = state.watches[person]
            let contacts = state.contacts[person, default: [:]].values
                .sorted { ($0.contact.step, $0.contact.name) < ($1.contact.step, $1.contact.name) }
            let alarms = state.alarms.filter { $0.value.person == person && $0.value.state != "resolved" }
            guard watch != nil || !contacts.isEmpty || !alarms.isEmpty else { return nil }
            return CheckInState(
                person: person, state: watch?.state,
                lastCheckedIn: watch.flatMap { $0.lastCheckedIn == .distantPast ? nil : $0.lastCheckedIn },
                checkInExpiration: watch?.expiration,
                checkInInterval: watch.map { SpanCoding.text($0.settings.every) }, pausedUntil: watch?.pausedUntil,
                contacts: contacts.map(\.shown),
                alarms: alarms.map { id, alarm in
                    CheckInState.OpenAlarm(
                        id: id, state: alarm.state, cause: alarm.cause, raisedAt: alarm.raisedAt, told: alarm.told,
                        reachesNobody: alarm.told.isEmpty)
                })
        }
    }
}

struct MemoryEmergency: EmergencyClient {
    let memory: MemoryContext

    func setContact(_ contact: EmergencyContact) async throws -> Submission<Int> {
        let person = memory.person
        return try await memory.gateway.submit("check_in_contact") { state in
            guard contact.name != person else {
                throw AppError(.invalid, "a person cannot be their own contact", field: "contact")
            }
            guard contact.mail != nil || contact.sms != nil || contact.voice != nil || contact.push else {
                throw AppError(.invalid, "channels is not an object with at least one channel", field: "channels")
            }
            var stored =
                state.contacts[person, default: [:]][contact.name] ?? MemoryState.StoredContact(contact: contact)
            stored.contact = contact
            state.contacts[person, default: [:]][contact.name] = stored
            state.changed(.checkIns, person, "contact", for: [person], ["contact": .string(contact.name)])
            if contact.push { state.changed(.checkIns, person, "asked", for: [contact.name]) }
            return stored.consent == "given" ? stored.shown.channels?.count ?? 0 : 0
        }
    }

    func removeContact(_ contact: String) async throws -> Submission<Bool> {
        let person = memory.person
        return try await memory.gateway.submit("check_in_contact_remove") { state in
            guard state.contacts[person]?.removeValue(forKey: contact) != nil else { return false }
            state.changed(.checkIns, person, "contact_removed", for: [person], ["contact": .string(contact)])
            state.changed(.checkIns, person, "unwatched", for: [contact])
            return true
        }
    }

    func accept(_ person: String, agrees: Bool) async throws -> Submission<Int> {
        let me = memory.person
        return try await memory.gateway.submit("check_in_accept") { state in
            _ = try state.acceptContact(me, ["person": .string(person), "agrees": .bool(agrees)])
            return 1
        }
    }

    func help(note: String?, place: CheckInPlace?) async throws -> Submission<HelpAnswer> {
        let (person, clock) = (memory.person, memory.clock)
        return try await memory.gateway.submit("check_in_help") { state in
            let told = state.reachable(person)
            let known = state.alarms.first {
                $0.value.person == person && $0.value.state != "resolved" && $0.value.cause == "help"
            }
            let id = known?.key ?? state.makeID()
            if known == nil {
                state.alarms[id] = MemoryState.StoredAlarm(
                    person: person, cause: "help", raisedAt: state.now(), told: told, note: note)
                state.changed(
                    .alarms, id.uuidString.lowercased(), "raised", for: [person] + told,
                    ["person": .string(person), "cause": "help"])
            }
            state.keep(place, of: person, clock)
            return HelpAnswer(
                alarm: id, state: "open", told: told, toTell: [], reachesNobody: told.isEmpty,
                sentence: told.isEmpty
                    ? "nobody can be told: no contact has a confirmed address"
                    : "told: \(told.joined(separator: ", "))",
                placeUsed: place?.isOnEarth)
        }
    }

    func respond(to alarm: UUID, _ answer: AlarmAnswer) async throws -> Submission<String> {
        let me = memory.person
        return try await memory.gateway.submit("check_in_respond") { state in
            guard var found = state.alarms[alarm], found.person == me || found.told.contains(me) else {
                throw AppError(.not_found, "there is no such alarm for this contact", field: "alarm")
            }
            guard found.state != "resolved" else { return found.state }
            guard found.person != me || answer == .safe else {
                throw AppError(.invalid, "the person can only answer that they are safe", field: "answer")
            }
            switch answer {
            case .safe: found.state = "resolved"
            case .acknowledged, .onMyWay: found.state = "acknowledged"
            case .cannot: break
            }
            found.answers.append(EmergencyAlarm.Answer(contact: me, answer: answer.rawValue, at: state.now()))
            state.alarms[alarm] = found
            state.changed(
                .alarms, alarm.uuidString.lowercased(), found.state == "resolved" ? "resolved" : "answered",
                for: [found.person] + found.told, ["contact": .string(me), "answer": .string(answer.rawValue)])
            return found.state
        }
    }

    func drill() async throws -> UUID {
        try await memory.gateway.act("check_in_drill") { state in
            let told = state.reachable(memory.person)
            guard !told.isEmpty else {
                throw AppError(.conflict, "no contact of this person has a verified address", field: "person")
            }
            let id = state.makeID()
            state.alarms[id] = MemoryState.StoredAlarm(
                person: memory.person, cause: "drill", raisedAt: state.now(), told: told)
            return id
        }
    }

    func alarmChanges() -> AsyncThrowingStream<FeedChange, any Error> {
        memory.gateway.changes(for: memory.person, [.alarms], since: nil).changes
    }
}

extension MemoryState.StoredContact {
    var shown: CheckInState.Contact {
        let addresses: [(String, String?)?] = [
            contact.mail.map { ("mail", $0) }, contact.sms.map { ("sms", $0) }, contact.voice.map { ("voice", $0) },
            contact.push ? ("push", nil) : nil,
        ]
        return CheckInState.Contact(
            contact: contact.name, step: contact.step,
            channels: addresses.compactMap { $0 }.map {
                CheckInState.Channel(channel: $0.0, address: $0.1, consent: consent)
            }.sorted { $0.channel < $1.channel }, name: name, label: label, shares: shares,
            waitSeconds: contact.wait.inSeconds)
    }
}

extension MemoryState {
    /// The newest place that can be right.
    mutating func keep(_ place: CheckInPlace?, of person: String, _ clock: DeviceClock?) {
        guard var place, place.isOnEarth else { return }
        place.at = place.at.map { happened($0, clock) } ?? now()
        if let newest = whereabouts[person]?.at, newest > place.at ?? newest { return }
        whereabouts[person] = place
    }

    func watch(of person: String) throws -> Watch {
        guard let watch = watches[person] else {
            throw AppError(.not_found, "this person has no watch", field: "person", hint: "check_in_arm makes one.")
        }
        return watch
    }

    /// A watch that does not run, because nobody can be told yet.
    static let unarmed = Watch(settings: WatchSettings(), state: "disarmed", lastCheckedIn: .distantPast)

    func reachable(_ person: String) -> [String] {
        contacts[person, default: [:]].values.filter { $0.consent == "given" }.map(\.contact.name).sorted()
    }

    mutating func endAlarm(of person: String) {
        for (id, alarm) in alarms where alarm.person == person && alarm.cause == "expired" && alarm.state != "resolved"
        {
            alarms[id]?.state = "resolved"
            changed(.alarms, id.uuidString.lowercased(), "resolved", for: [person] + alarm.told)
        }
    }

    /// As the gateway does: a time that cannot be true counts as now.
    mutating func checkIn(_ person: String, at: Date) throws -> Date {
        let isAlone = reachable(person).isEmpty
        var watch = try isAlone ? watches[person] ?? Self.unarmed : watch(of: person)
        guard watch.state != "disarmed" || isAlone else {
            throw AppError(.conflict, "the watch is disarmed", field: "person")
        }
        let now = now()
        let isUsed =
            at >= watch.lastCheckedIn && at <= now.addingTimeInterval(120) && at >= now.addingTimeInterval(-86400)
        let counted = isUsed ? min(at, now) : now
        let expiry = counted.addingTimeInterval(watch.settings.every.inSeconds)
        watch.lastCheckedIn = counted
        if watch.state == "disarmed" {  // nobody could be told: it counts, and nothing waits for the next
            watch.expiration = expiry
            watches[person] = watch
            changed(.checkIns, person, "checked_in", for: [person])
            return expiry
        }
        watch.expiration = (watch.expiration ?? now) > now ? max(watch.expiration ?? now, expiry) : expiry
        if watch.state != "paused" { watch.state = (watch.expiration ?? now) > now ? "armed" : "expired" }
        watches[person] = watch
        endAlarm(of: person)
        changed(.checkIns, person, "checked_in", for: [person])
        return watch.expiration ?? expiry
    }
}
