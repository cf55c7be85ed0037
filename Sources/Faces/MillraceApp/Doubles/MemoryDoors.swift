import Foundation

/// The double of any function: what a test has said that it answers, or the rules below.
struct MemoryDoors: DoorCaller {
    let memory: MemoryContext
    var person: String { memory.person }

    func answer(_ door: String, _ arguments: [String: AppValue], once: Bool) async throws -> AppValue {
        try await memory.gateway.call(door, arguments, by: person)
    }

    func submit(
        _ door: String, _ arguments: [String: AppValue], at: Date?, id: UUID
    ) async throws -> Submission<AppValue> {
        try await memory.gateway.submit(door, arguments, id: id, by: person)
    }

    func changes(_ topics: Set<FeedTopic>, since position: Int64?) -> AsyncThrowingStream<FeedEvent, any Error> {
        memory.gateway.changes(for: person, topics, since: position)
    }

    /// This double runs no jobs.
    func changes(ofJob id: Int64) -> AsyncThrowingStream<FeedEvent, any Error> { AsyncThrowingStream { $0.finish() } }
}

extension MemoryState {
    mutating func answer(_ door: String, _ arguments: [String: AppValue], by person: String) throws -> AppValue {
        switch door {
        case "now": AppValue(now())
        case "flag_on": .bool(flags.contains(arguments["name"]?.string ?? ""))
        case "subscription_mine":
            subscriptions[person] ?? [
                "account": .string("person:\(person)"), "plan": nil, "subscriptions": [], "quotas": [],
            ]
        case "sync_devices": .array([])
        case "sync_device_remove": false
        case "person_show": try shown(arguments["person"]?.string ?? person, to: person)
        case "person_profile": changeProfile(of: person, arguments)
        case "person_avatar_link": AppValue(profiles[arguments["person"]?.string ?? person]?.avatar)
        case "person_export": .array([])
        case "feed_mine": try feedPage(of: person, arguments)
        case "check_in_show": contactsShown(of: person)
        case "check_in_watched": watchedBy(person, consent: arguments["consent"]?.string)
        case "check_in_contact_details": try describeContact(of: person, arguments)
        case "check_in_consent_ask": .int(contacts[person]?[arguments["contact"]?.string ?? ""] == nil ? 0 : 1)
        case "check_in_alarms": alarmsShown(to: person, isOpen: arguments["is_open"]?.bool)
        case "check_in_alarm_show": try alarm(arguments["alarm"]?.string ?? "", to: person)
        case "check_in_accept": try acceptContact(person, arguments)
        default:
            throw AppError(
                .unsupported, "the double has no rules for \(door)",
                hint: "Say what it answers: MemoryGateway.answer(\"\(door)\").")
        }
    }

    // MARK: people

    private func shown(_ other: String, to person: String) throws -> AppValue {
        let profile = profiles[other] ?? Profile()
        var shown: [String: AppValue] = [
            "person": .string(other), "display_name": AppValue(profile.displayName), "avatar": AppValue(profile.avatar),
        ]
        guard other != person else {
            let mine = family(of: person)
            shown["family"] = AppValue(mine?.name)
            shown["role"] = AppValue(mine?.family.members[person]?.rawValue)
            shown["locale"] = AppValue(profile.locale)
            shown["zone"] = AppValue(profile.zone)
            shown["reminder_hour"] = AppValue(profile.reminderHour)
            shown["map"] = AppValue(profile.map)
            return .object(shown)
        }
        guard relatives(of: person).contains(other) || areContacts(person, other) else {
            throw AppError(
                .permission, "only that person, their family and their contacts may see this", field: "actor")
        }
        return .object(shown)
    }

    private mutating func changeProfile(of person: String, _ given: [String: AppValue]) -> AppValue {
        var profile = profiles[person] ?? Profile()
        func set(_ field: WritableKeyPath<Profile, String?>, _ name: String) {
            if let text = given[name]?.string { profile[keyPath: field] = text.isEmpty ? nil : text }
        }
        set(\.displayName, "display_name")
        set(\.locale, "locale")
        set(\.zone, "zone")
        set(\.avatar, "avatar")
        set(\.map, "map")
        if let hour = given["reminder_hour"]?.int { profile.reminderHour = hour < 0 ? nil : hour }
        profiles[person] = profile
        changed(.people, person, "profile", for: [person])
        return true
    }

    func myFamily(of person: String) -> MyFamily {
        let mine = family(of: person)
        let role = mine?.family.members[person]
        return MyFamily(
            person: person, family: mine?.name, role: role, zone: mine?.family.zone,
            members: (mine?.family.members ?? [:]).sorted { $0.key < $1.key }.map {
                MyFamily.Member(
                    person: $0.key, role: $0.value, displayName: profiles[$0.key]?.displayName,
                    avatar: profiles[$0.key]?.avatar)
            },
            invited: role != .parent
                ? []
                : (mine?.family.invitations ?? [:]).values.sorted { $0.person < $1.person }.map {
                    MyFamily.Guest(
                        person: $0.person, role: $0.role, expiresAt: $0.expiresAt,
                        declinedAt: declined.contains([$0.family, $0.person]) ? now() : nil)
                },
            invitedTo: families.values.compactMap { $0.invitations[person] }.sorted { $0.family < $1.family }.map {
                MyFamily.Offer(
                    family: $0.family, role: $0.role, invitedBy: $0.invitedBy, expiresAt: $0.expiresAt,
                    declinedAt: declined.contains([$0.family, person]) ? now() : nil)
            })
    }

    private func feedPage(of person: String, _ given: [String: AppValue]) throws -> AppValue {
        let since = Int64(given["since"]?.int ?? 0)
        let topics = try given["topics"].map { try AppJSON.decode([String].self, from: $0) }
        let page = feed.filter { $0.person == person && $0.change.seq > since }.map(\.change)
            .filter { topics?.contains($0.topic) ?? true }.prefix(given["page"]?.int ?? 100)
        return .array(
            page.map {
                [
                    "seq": .int($0.seq), "at": AppValue($0.at), "topic": .string($0.topic), "ref": .string($0.ref),
                    "change": .string($0.change), "data": $0.data ?? .null,
                ]
            })
    }
}
