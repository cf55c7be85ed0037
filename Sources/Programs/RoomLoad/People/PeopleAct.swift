import CommandKit
import LoadKit

/// An action on a family, a contact or a watch, as an app's call.
enum PeopleAct: Sendable, Equatable {
    case create(family: String)
    case join(family: String, person: String, role: String)
    case invite(family: String, person: String, role: String)
    case uninvite(family: String, person: String)
    case leave(family: String, person: String)
    case erase(person: String)
    case look(PeopleSight, person: String)
    case name(person: String, contact: String, channels: [String: String])
    case remove(person: String, contact: String)
    case ask(person: String, contact: String)
    /// An answer through the link: yes, no, never.
    case link(person: String, contact: String, channel: String, answer: String)
    case accept(person: String, agrees: Bool)
    case arm(person: String)
    case checkIn(person: String)
    case disarm(person: String)
    case help(person: String)
    case respond(person: String, contact: String, answer: String)
    case wait(hours: Int)
}

/// The data of a person that are read.
enum PeopleSight: String, Sendable, CaseIterable {
    case points, weekly_stats, quest_history, moods, check_in_show
}

struct PeopleStep: Sendable, Equatable {
    /// Whose claims the call has; nil: a back end, without claims.
    var actor: String?
    var act: PeopleAct
}

extension PeopleStep {
    /// nil: it is no call of a person's or a back end's.
    var sql: String? {
        switch act {
        case .create(let family): "millrace.family_create('\(family)', 'UTC')"
        case .join(let family, let person, let role): "millrace.family_join('\(family)', '\(person)', '\(role)')"
        case .invite(let family, let person, let role): "millrace.family_invite('\(family)', '\(person)', '\(role)')"
        case .uninvite(let family, let person): "millrace.family_uninvite('\(family)', '\(person)')"
        case .leave(let family, let person): "millrace.family_leave('\(family)', '\(person)')"
        case .erase(let person): "millrace.person_erase('\(person)')"
        case .look(let sight, let person): "count(*) from millrace.\(sight.rawValue)('\(person)')"
        case .name(let person, let contact, let channels):
            "millrace.check_in_contact('\(person)', '\(contact)', 1, '\(Self.json(channels))')"
        case .remove(let person, let contact): "millrace.check_in_contact_remove('\(person)', '\(contact)')"
        case .ask(let person, let contact): "millrace.check_in_consent_ask('\(person)', '\(contact)')"
        case .accept(let person, let agrees): "millrace.check_in_accept('\(person)', \(agrees))"
        case .arm(let person): "millrace.check_in_arm('\(person)', '90 min', warnings => '{}')"
        case .checkIn(let person): "millrace.check_in('\(person)')"
        case .disarm(let person): "millrace.check_in_disarm('\(person)')"
        case .help(let person): "millrace.check_in_alarm('\(person)')"
        case .link, .respond, .wait: nil
        }
    }

    private static func json(_ channels: [String: String]) -> String {
        let members = channels.sorted { $0.key < $1.key }.map { channel, address in
            "\"\(channel)\": \(channel == "push" ? "true" : "\"\(address)\"")"
        }
        return "{\(members.joined(separator: ", "))}"
    }
}

/// Steps that are likely to get somewhere, and some that must not.
struct PeopleChoices {
    static let people = (0..<20).map { "p\($0)" }
    private static let families = (0..<4).map { "f\($0)" }
    private var random: SeededChoices

    init(seed: UInt64) { random = SeededChoices(seed: seed) }

    mutating func next(_ model: PeopleModel) -> PeopleStep {
        // A few people meet often; the others come by.
        let actor = random.chance(0.6) ? "p\(random.next() % 5)" : any(Self.people)
        let other = random.chance(0.3) ? actor : random.chance(0.6) ? "p\(random.next() % 5)" : any(Self.people)
        let family = model.members[random.chance(0.5) ? actor : other]?.family ?? any(Self.families)
        let role = random.chance(0.5) ? "teen" : "parent"
        switch random.next() % 100 {
        case ..<6: return step(backed(actor, 0.1), .create(family: any(Self.families)))
        case ..<14: return step(backed(actor, 0.15), .join(family: family, person: other, role: role))
        case ..<22: return joining(actor, model)
        case ..<30: return step(backed(actor, 0.1), .invite(family: family, person: other, role: role))
        case ..<33: return step(backed(actor, 0.1), .uninvite(family: family, person: other))
        case ..<38:
            return step(
                backed(actor, 0.1), .leave(family: family, person: random.chance(0.5) ? actor : other))
        case ..<43: return erasing(actor, other, model)
        case ..<52: return step(actor, .look(any(PeopleSight.allCases), person: other))
        case ..<64: return naming(actor, other)
        case ..<78: return contact(actor, other, model)
        case ..<92: return watch(actor, other, model)
        default: return step(actor, .wait(hours: any([1, 1, 5, 13, 25])))
        }
    }

    private mutating func any<Value>(_ values: [Value]) -> Value {
        values[Int(random.next() % UInt64(values.count))]
    }

    private mutating func backed(_ actor: String, _ share: Double) -> String? { random.chance(share) ? nil : actor }

    private func step(_ actor: String?, _ act: PeopleAct) -> PeopleStep { PeopleStep(actor: actor, act: act) }

    /// By an invitation, if there is one.
    private mutating func joining(_ actor: String, _ model: PeopleModel) -> PeopleStep {
        let open = model.invitations.keys.sorted()
        guard !open.isEmpty else {
            return step(actor, .join(family: any(Self.families), person: actor, role: "teen"))
        }
        let one = any(open)
        let role = model.invitations[one]?.role ?? "teen"
        return step(
            one.person, .join(family: one.family, person: one.person, role: random.chance(0.9) ? role : "parent"))
    }

    /// Often a person with an open alarm.
    private mutating func erasing(_ actor: String, _ other: String, _ model: PeopleModel) -> PeopleStep {
        let alarmed = model.alarms.filter { $0.value.isOpen && model.isReached($0.key) }.keys.sorted()
        if !alarmed.isEmpty, random.chance(0.5) {
            let person = any(alarmed)
            return step(backed(random.chance(0.7) ? person : actor, 0.2), .erase(person: person))
        }
        return step(backed(actor, 0.1), .erase(person: random.chance(0.3) ? actor : other))
    }

    private mutating func naming(_ actor: String, _ other: String) -> PeopleStep {
        let person = random.chance(0.9) ? actor : other
        let stranger = random.next() % 3
        var channels: [String: String] = [:]
        let contact = random.chance(0.4) ? other : any(["c1", "c2"])
        if random.chance(0.5) { channels["mail"] = any(["m\(stranger)@example.com", "m\(stranger)+x@example.com"]) }
        if random.chance(0.4) { channels["sms"] = "+491511234567\(stranger)" }
        if random.chance(0.3) { channels["voice"] = "+491511234567\(stranger)" }
        if channels.isEmpty || random.chance(0.2) { channels["push"] = contact }
        return step(actor, .name(person: person, contact: contact, channels: channels))
    }

    private mutating func contact(_ actor: String, _ other: String, _ model: PeopleModel) -> PeopleStep {
        let named = model.contacts.keys.sorted()
        guard !named.isEmpty else { return naming(actor, other) }
        let one = any(named)
        let channel = any((model.contacts[one] ?? [:]).keys.sorted())
        switch random.next() % 10 {
        case ..<1: return step(one.person, .remove(person: one.person, contact: one.contact))
        case ..<2: return step(actor, .remove(person: one.person, contact: one.contact))
        case ..<4: return step(one.person, .ask(person: one.person, contact: one.contact))
        case ..<5: return step(one.contact, .accept(person: one.person, agrees: random.chance(0.7)))
        case ..<6: return step(actor, .accept(person: one.person, agrees: random.chance(0.7)))
        default:
            let answer = random.chance(0.8) ? "yes" : random.chance(0.8) ? "no" : "never"
            return step(
                nil, .link(person: one.person, contact: one.contact, channel: channel, answer: answer))
        }
    }

    private mutating func watch(_ actor: String, _ other: String, _ model: PeopleModel) -> PeopleStep {
        let person = random.chance(0.75) ? actor : other
        switch random.next() % 10 {
        case ..<4:
            let reached = model.contacts.filter { $0.value.values.contains { $0.isGiven } }.keys.sorted()
            guard let one = reached.isEmpty ? nil : any(reached) else { return step(actor, .arm(person: person)) }
            return step(random.chance(0.85) ? one.person : actor, .arm(person: one.person))
        case ..<6: return step(actor, .checkIn(person: person))
        case ..<7: return step(actor, .disarm(person: person))
        case ..<8: return step(actor, .help(person: person))
        default:
            let told = model.alarms.keys.sorted()
            guard !told.isEmpty else { return step(actor, .help(person: actor)) }
            let watched = any(told)
            let contacts =
                model.contacts.keys.sorted().filter { $0.person == watched }.map(\.contact) + [watched, other]
            let contact = any(contacts)
            return step(
                random.chance(0.8) ? contact : actor,
                .respond(person: watched, contact: contact, answer: any(["acknowledged", "cannot", "safe"])))
        }
    }
}
