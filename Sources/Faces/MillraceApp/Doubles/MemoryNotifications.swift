import Foundation

struct MemoryNotifications: NotificationClient {
    let memory: MemoryContext

    func addDevice(_ token: String, _ platform: PushPlatform, app: String?) async throws -> Submission<Bool> {
        let person = memory.person
        return try await memory.gateway.submit("device_add") { state in
            guard (8...4096).contains(token.count), token.allSatisfy({ $0.isASCII && !$0.isWhitespace }) else {
                throw AppError(.invalid, "the token is missing or malformed", field: "token")
            }
            let was = state.devices.updateValue(person, forKey: token)
            return was != person
        }
    }

    func removeDevice(_ token: String) async throws -> Submission<Bool> {
        let person = memory.person
        return try await memory.gateway.submit("device_remove") { state in
            guard state.devices[token] == person else { return false }
            state.devices[token] = nil
            return true
        }
    }

    func setPreferences(_ preferences: NoticePreferences) async throws -> Submission<Bool> {
        let person = memory.person
        return try await memory.gateway.submit("notice_preferences") { state in
            guard TimeZone(identifier: preferences.zone) != nil else {
                throw AppError(.invalid, "the zone is unknown", field: "zone")
            }
            return state.preferences.updateValue(preferences, forKey: person) != preferences
        }
    }

    func schedule(_ notice: OwnNotice) async throws -> Submission<UUID> {
        let (person, clock) = (memory.person, memory.clock)
        return try await memory.gateway.submit("own_notice_schedule") { state in
            var notice = notice
            notice.at = state.byOurClock(notice.at, clock)
            guard notice.at > state.now().addingTimeInterval(-60) else {
                throw AppError(.invalid, "at is missing, past, or more than 400 days away", field: "at")
            }
            // The one that waits is changed; after one that was cancelled there is a new one.
            let known = state.notices[person]?[notice.key]
            let id = known.flatMap { $0.isCancelled ? nil : $0.id } ?? state.makeID()
            state.notices[person, default: [:]][notice.key] = MemoryState.StoredNotice(id: id, notice: notice)
            return id
        }
    }

    func move(_ key: String, to at: Date) async throws -> Submission<Bool> {
        let (person, clock) = (memory.person, memory.clock)
        return try await memory.gateway.submit("own_notice_move") { state in
            guard state.notices[person]?[key]?.isCancelled == false else { return false }
            let due = state.byOurClock(at, clock)
            state.notices[person]?[key]?.notice.at = due
            return true
        }
    }

    func cancel(_ key: String) async throws -> Submission<Bool> {
        let person = memory.person
        return try await memory.gateway.submit("own_notice_cancel") { state in
            guard state.notices[person]?[key]?.isCancelled == false else { return false }
            state.notices[person]?[key]?.isCancelled = true
            return true
        }
    }

    func scheduleDailyReminder(atHour hour: Int?) async throws -> Submission<Bool> {
        let person = memory.person
        return try await memory.gateway.submit("person_profile") { state in
            if let hour, !(0...23).contains(hour) {
                throw AppError(.invalid, "the hour is out of range", field: "reminder_hour")
            }
            state.profiles[person, default: MemoryState.Profile()].reminderHour = hour
            return true
        }
    }
}

struct MemoryUser: UserClient {
    let memory: MemoryContext

    func setProfile(displayName: String?, locale: String?, zone: String?) async throws -> Submission<Bool> {
        let person = memory.person
        return try await memory.gateway.submit("person_profile") { state in
            if let zone, !zone.isEmpty, TimeZone(identifier: zone) == nil {
                throw AppError(.invalid, "the zone is unknown", field: "zone")
            }
            var profile = state.profiles[person] ?? MemoryState.Profile()
            if let displayName { profile.displayName = displayName.isEmpty ? nil : displayName }
            if let locale { profile.locale = locale.isEmpty ? nil : locale }
            if let zone { profile.zone = zone.isEmpty ? nil : zone }
            state.profiles[person] = profile
            return true
        }
    }

    func deleteAccount() async throws {
        try await memory.gateway.act("person_erase") { state in
            let person = memory.person
            for (id, document) in state.documents where document.owner == person {
                if document.document.status != .deleted { state.set(id, .deleted, "deleted") }
            }
            for (id, picture) in state.pictures where picture.owner == person { state.pictures[id] = nil }
            for (id, mood) in state.moods where mood.person == person { state.moods[id] = nil }
            for (id, hobby) in state.hobbies where hobby.person == person { state.hobbies[id] = nil }
            for (id, card) in state.cards where state.hobbies[card.hobby] == nil { state.cards[id] = nil }
            for (token, owner) in state.devices where owner == person { state.devices[token] = nil }
            for family in state.families.keys { state.families[family]?.members[person] = nil }
            (state.points[person], state.watches[person], state.contacts[person]) = (nil, nil, nil)
            (state.profiles[person], state.preferences[person], state.notices[person]) = (nil, nil, nil)
            state.whereabouts[person] = nil
        }
    }
}

struct MemoryMail: MailStatusClient {
    let memory: MemoryContext

    func status(of id: UUID) async throws -> MailProgress {
        try await memory.gateway.ask("mail_message") { state in
            guard let found = state.mails[id], found.owner == memory.person else {
                throw AppError(.not_found, "there is no mail \(id)", field: "id")
            }
            return found.status
        }
    }

    func streamStatus(of id: UUID) -> AsyncThrowingStream<MailProgress, any Error> {
        memory.gateway.changes(for: memory.person, [.mail], since: nil).following {
            $0.ref == id.uuidString.lowercased()
        } read: {
            try await status(of: id)
        } isLast: {
            $0.isFinal
        }
    }

    func cancel(_ id: UUID) async throws -> Bool {
        try await memory.gateway.act("mail_cancel") { state in
            guard let found = state.mails[id], found.owner == memory.person, !found.status.isFinal else { return false }
            state.mails[id] = (found.owner, MailProgress(id: id, status: "cancelled"))
            return true
        }
    }
}
