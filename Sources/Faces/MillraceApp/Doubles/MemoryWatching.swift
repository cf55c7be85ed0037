import Foundation

/// The contact's side of check-ins, as the gateway answers it.
extension MemoryState {
    func contactsShown(of person: String) -> AppValue {
        let shown = contacts[person, default: [:]].values
            .sorted { ($0.contact.step, $0.contact.name) < ($1.contact.step, $1.contact.name) }.map(\.shown)
        guard !shown.isEmpty else { return .null }
        return [
            "person": .string(person), "alarms": [],
            "contacts": .array(
                shown.map { one in
                    [
                        "contact": .string(one.contact), "step": AppValue(one.step), "name": AppValue(one.name),
                        "label": AppValue(one.label), "shares": AppValue(one.shares),
                        "wait_seconds": .double(one.waitSeconds ?? 0),
                        "channels": .array(
                            (one.channels ?? []).map {
                                [
                                    "channel": .string($0.channel), "address": AppValue($0.address),
                                    "consent": .string($0.consent),
                                ]
                            }),
                    ]
                }),
        ]
    }

    func watchedBy(_ me: String, consent: String?) -> AppValue {
        let found = contacts.compactMap { person, all -> (String, StoredContact)? in
            guard let mine = all[me], mine.contact.push, consent == nil || consent == mine.consent else { return nil }
            return (person, mine)
        }.sorted { $0.0 < $1.0 }
        return [
            "next": nil,
            "people": .array(
                found.map { person, contact in
                    var shown: [String: AppValue] = [
                        "person": .string(person), "name": .string(profiles[person]?.displayName ?? person),
                        "consent": .string(contact.consent),
                    ]
                    guard contact.consent == "given" else { return .object(shown) }
                    shown["avatar"] = AppValue(profiles[person]?.avatar)
                    shown["shares"] = .string(contact.shares)
                    shown["alarms"] = .array(
                        alarms.filter { $0.value.person == person && $0.value.state != "resolved" }
                            .filter { $0.value.told.contains(me) }.map { AppValue($0.key) })
                    let watch = watches[person]
                    if contact.shares != "nothing" {
                        shown["state"] = .string(watch.map { $0.state == "warned" ? "armed" : $0.state } ?? "disarmed")
                    }
                    if contact.shares == "times" {
                        shown["last_checked_in"] = AppValue(watch?.lastCheckedIn)
                        shown["check_in_expiration"] = AppValue(watch?.expiration)
                        shown["paused_until"] = AppValue(watch?.pausedUntil)
                    }
                    return .object(shown)
                }),
        ]
    }

    mutating func describeContact(of person: String, _ given: [String: AppValue]) throws -> AppValue {
        guard let name = given["contact"]?.string, var stored = contacts[person]?[name] else {
            throw AppError(.not_found, "there is no such contact", field: "contact")
        }
        if let text = given["name"]?.string { stored.name = text.isEmpty ? nil : text }
        if let text = given["label"]?.string { stored.label = text.isEmpty ? nil : text }
        if let text = given["shares"]?.string { stored.shares = text.isEmpty ? "nothing" : text }
        contacts[person]?[name] = stored
        changed(.checkIns, person, "contact", for: [person], ["contact": .string(name)])
        return true
    }

    mutating func acceptContact(_ me: String, _ given: [String: AppValue]) throws -> AppValue {
        guard let person = given["person"]?.string, contacts[person]?[me]?.contact.push == true else {
            throw AppError(.not_found, "this person has not named you", field: "person")
        }
        let agrees = given["agrees"]?.bool == true
        contacts[person]?[me]?.consent = agrees ? "given" : "declined"
        changed(
            .checkIns, person, agrees ? "consent_given" : "consent_declined", for: [person],
            ["contact": .string(me)])
        changed(.checkIns, person, agrees ? "watched" : "answered", for: [me])
        return 1
    }

    // MARK: alarms

    func alarmsShown(to me: String, isOpen: Bool?) -> AppValue {
        let found = alarms.filter { $0.value.person == me || $0.value.told.contains(me) }
            .filter { isOpen == nil || isOpen == ($0.value.state != "resolved") }
            .sorted { ($0.value.raisedAt, $0.key.uuidString) > ($1.value.raisedAt, $1.key.uuidString) }
        return ["next": nil, "alarms": .array(found.map { shown($0.key, $0.value, to: me) })]
    }

    func alarm(_ name: String, to me: String) throws -> AppValue {
        guard let id = UUID(uuidString: name), let found = alarms[id], found.person == me || found.told.contains(me)
        else { throw AppError(.not_found, "there is no such alarm", field: "alarm") }
        return shown(id, found, to: me)
    }

    private func shown(_ id: UUID, _ alarm: StoredAlarm, to me: String) -> AppValue {
        let name = profiles[alarm.person]?.displayName ?? alarm.person
        let place = whereabouts[alarm.person].map { place -> AppValue in
            [
                "latitude": .double(place.latitude), "longitude": .double(place.longitude),
                "accuracy": place.accuracy.map { .double($0) } ?? .null,
            ]
        }
        return [
            "alarm": AppValue(id), "person": .string(alarm.person), "is_own": .bool(alarm.person == me),
            "state": .string(alarm.state), "cause": .string(alarm.cause), "test": .bool(alarm.cause == "drill"),
            "raised_at": AppValue(alarm.raisedAt), "name": .string(name),
            "title": .string(alarm.cause == "help" ? "\(name) asks for help" : "\(name) has not checked in"),
            "body": .string(alarm.note ?? ""), "place": place ?? .null,
            "answer": AppValue(alarm.answers.last { $0.contact == me }?.answer),
            "answers": .array(
                alarm.answers.map {
                    ["contact": .string($0.contact), "answer": .string($0.answer), "at": AppValue($0.at)]
                }),
        ]
    }
}
