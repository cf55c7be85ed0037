import Foundation

struct MemoryHobbies: HobbyService {
    let memory: MemoryContext

    func presets() async throws -> [String] {
        try await memory.gateway.ask("hobby_presets") { _ in
            ["chess", "cooking", "drawing", "football", "music", "reading"]
        }
    }

    func save(_ hobby: NewHobby) async throws -> Submission<UUID> {
        let person = memory.person
        return try await memory.gateway.submit("hobby_save") { try $0.save(hobby, by: person) }
    }

    func hobbies(in family: String?, after: UUID?) async throws -> [Hobby] {
        let me = memory.person
        return try await memory.gateway.ask("hobbies") { state in
            if let family { try state.mustBeIn(family, me) }
            let all = state.hobbies.filter { family == nil ? $0.value.person == me : $0.value.family == family }
                .map { id, hobby in
                    Hobby(
                        id: id, person: hobby.person, name: hobby.name, fact: hobby.fact, at: hobby.at,
                        seenBy: hobby.seenBy)
                }
                .sorted { ($0.at, $0.id.uuidString) > ($1.at, $1.id.uuidString) }
            return after.map { after in Array(all.drop { $0.id != after }.dropFirst()) } ?? all
        }
    }

    func markSeen(_ hobby: UUID) async throws -> Submission<Bool> {
        let person = memory.person
        return try await memory.gateway.submit("hobby_seen") { state in
            guard let found = state.hobbies[hobby], let family = state.family(of: person)?.name, found.family == family
            else { throw AppError(.not_found, "there is no hobby \(hobby) in this family", field: "hobby") }
            guard found.person != person, !found.seenBy.contains(person) else { return false }
            state.hobbies[hobby]?.seenBy.append(person)
            _ = state.award(person, "seen:\(hobby)", 1)
            return true
        }
    }

    func cards(in family: String, after: UUID?) async throws -> [FlashCard] {
        let me = memory.person
        return try await memory.gateway.ask("cards") { state in
            try state.mustBeIn(family, me)
            let all = state.cards.filter { $0.value.family == family }.compactMap { id, card -> FlashCard? in
                guard let hobby = state.hobbies[card.hobby] else { return nil }
                return FlashCard(
                    id: id, person: hobby.person, fact: hobby.fact, at: card.at, answered: card.answers[me] != nil,
                    question: card.question)
            }.sorted { $0.id.uuidString < $1.id.uuidString }
            return after.map { after in Array(all.drop { $0.id != after }.dropFirst()) } ?? all
        }
    }

    func answer(_ card: UUID, _ answer: String, at: Date) async throws -> Submission<CardAnswer> {
        let person = memory.person
        return try await memory.gateway.submit("card_answer") { state in
            guard let found = state.cards[card], let hobby = state.hobbies[found.hobby],
                state.family(of: person)?.name == found.family
            else { throw AppError(.not_found, "there is no card \(card) in this family", field: "card") }
            guard hobby.person != person else {
                throw AppError(.permission, "a person cannot answer their own card", field: "card")
            }
            var awarded = 0
            if found.answers[person] == nil {
                state.cards[card]?.answers[person] = answer.lowercased() == hobby.name.lowercased()
                awarded = state.award(person, "card:\(card)", 2)
            }
            return CardAnswer(
                right: state.cards[card]?.answers[person] ?? false, awarded: awarded, total: state.total(of: person),
                name: hobby.name)
        }
    }
}

extension MemoryState {
    mutating func save(_ hobby: NewHobby, by person: String) throws -> UUID {
        for (text, field) in [(hobby.name, "name"), (hobby.fact, "fact")]
        where text.trimmingCharacters(in: .whitespaces).isEmpty {
            throw AppError(.invalid, "the \(field) is missing", field: field)
        }
        let same = hobbies.first { $0.value.person == person && $0.value.name.lowercased() == hobby.name.lowercased() }
        if let known = hobbies[hobby.id] {
            guard known.person == person, same?.key == hobby.id else {
                throw AppError(.conflict, "hobby \(hobby.id) is already saved with different content", field: "id")
            }
            hobbies[hobby.id]?.fact = hobby.fact
            return hobby.id
        }
        if same != nil { throw AppError(.conflict, "this hobby is already saved under another id", field: "id") }
        let family = family(of: person)?.name
        hobbies[hobby.id] = StoredHobby(
            person: person, family: family, name: hobby.name, fact: hobby.fact, at: now())
        _ = award(person, "hobby:\(hobby.name.lowercased())", 5)
        if let family {
            cards[makeID()] = StoredCard(hobby: hobby.id, family: family, at: now())
            doQuest(of: "share_hobby", by: person, at: now())
        }
        return hobby.id
    }
}

struct MemoryQuests: QuestService {
    let memory: MemoryContext

    func today(in family: String) async throws -> Quest {
        let me = memory.person
        return try await memory.gateway.ask("quest_today") { state in
            try state.mustBeIn(family, me)
            let day = state.today(of: me)
            let done = state.completions[family]?[day] ?? [:]
            let (kind, title) = state.questKind(day)
            var streak = done.isEmpty ? 0 : 1
            var before = day.adding(days: -1)
            while state.completions[family]?[before]?.isEmpty == false {
                (streak, before) = (streak + 1, before.adding(days: -1))
            }
            return Quest(
                id: nil, title: title, description: nil, kind: kind, family: family, day: day,
                state: done.isEmpty ? "open" : "done",
                endsAt: state.endOfDay(day, zone: state.families[family]?.zone ?? "UTC"), streak: streak, freezes: 0,
                completedBy: done.sorted { $0.value < $1.value }.map(\.key), completed: done[me] != nil)
        }
    }

    func complete(in family: String, day: AppDay?, at: Date) async throws -> Submission<QuestResult> {
        let (person, clock) = (memory.person, memory.clock)
        return try await memory.gateway.submit("quest_complete") { state in
            try state.mustBeIn(family, person)
            let at = state.happened(at, clock)
            let day = day ?? state.day(of: at, person)
            let awarded = state.complete(family, day, by: person, at: at)
            return QuestResult(awarded: awarded, total: state.total(of: person), day: day)
        }
    }

    func complete(_ days: [AppDay], in family: String) async throws -> [QuestResult] {
        let person = memory.person
        return try await memory.gateway.act("quest_complete_many") { state in
            try state.mustBeIn(family, person)
            return days.map { day in
                let awarded = state.complete(family, day, by: person, at: state.now())
                return QuestResult(awarded: awarded, total: state.total(of: person), day: day)
            }
        }
    }

    func streamToday(in family: String) -> AsyncThrowingStream<Quest, any Error> {
        memory.gateway.changes(for: memory.person, [.quests], since: nil)
            .following(read: { try await today(in: family) }).withoutRepeats
    }

    func undo(in family: String, person: String?, day: AppDay?) async throws -> Submission<QuestResult> {
        let me = memory.person
        return try await memory.gateway.submit("quest_undo") { state in
            let person = try state.seenPerson(person, by: me)
            try state.mustBeIn(family, person)
            let day = day ?? state.today(of: person)
            var taken = 0
            if state.completions[family]?[day]?.removeValue(forKey: person) != nil {
                taken = -(state.points[person]?.removeValue(forKey: "quest:\(family):\(day)") ?? 0)
            }
            return QuestResult(awarded: taken, total: state.total(of: person), day: day)
        }
    }

    func history(of person: String?, after: AppDay?) async throws -> [QuestDay] {
        let me = memory.person
        return try await memory.gateway.ask("quest_history") { state in
            let person = try state.seenPerson(person, by: me)
            guard let family = state.family(of: person)?.name else { return [] }
            return (state.completions[family] ?? [:]).filter { day, _ in after.map { day < $0 } ?? true }
                .map { day, done in
                    let (kind, title) = state.questKind(day)
                    return QuestDay(
                        day: day, kind: kind, title: title, state: done.isEmpty ? "open" : "done",
                        completed: done[person] != nil, at: done[person], late: false, id: nil, description: nil)
                }.sorted { $0.day > $1.day }
        }
    }

    func points(of person: String?) async throws -> Int {
        let me = memory.person
        return try await memory.gateway.ask("points") { state in state.total(of: try state.seenPerson(person, by: me)) }
    }
}

struct MemoryFamilies: FamilyService {
    let memory: MemoryContext

    func create(_ family: String, zone: String) async throws -> Bool {
        try await memory.gateway.act("family_create") { state in
            guard TimeZone(identifier: zone) != nil else {
                throw AppError(.invalid, "the zone is unknown", field: "zone")
            }
            if let known = state.families[family] {
                guard known.members[memory.person] == .parent else {
                    throw AppError(.conflict, "this family exists already", field: "family")
                }
                return false
            }
            state.families[family] = MemoryState.Family(zone: zone, members: [memory.person: .parent])
            return true
        }
    }

    func invite(_ person: String, to family: String, as role: FamilyRole) async throws -> Date {
        try await memory.gateway.act("family_invite") { state in
            guard state.families[family]?.members[memory.person] == .parent else {
                throw AppError(.permission, "only a parent of the family may do this", field: "actor")
            }
            let until = state.now().addingTimeInterval(14 * 86400)
            state.families[family]?.invitations[person] = Invitation(
                family: family, person: person, role: role, invitedBy: memory.person, expiresAt: until)
            return until
        }
    }

    func join(_ family: String, as role: FamilyRole) async throws -> Bool {
        try await memory.gateway.act("family_join") { state in
            if state.families[family]?.members[memory.person] != nil { return false }
            guard let invitation = state.families[family]?.invitations[memory.person], invitation.role == role,
                invitation.expiresAt > state.now(), !state.declined.contains([family, memory.person])
            else { throw AppError(.permission, "nobody has invited this person", field: "family") }
            state.families[family]?.invitations[memory.person] = nil
            state.families[family]?.members[memory.person] = role
            state.changed(.quests, family, "joined", for: state.relatives(of: memory.person))
            return true
        }
    }

    func leave(_ family: String) async throws -> Bool {
        try await memory.gateway.act("family_leave") {
            $0.families[family]?.members.removeValue(forKey: memory.person) != nil
        }
    }

    func invitations() async throws -> [Invitation] {
        try await memory.gateway.ask("family_invitations") { state in
            state.families.values.compactMap { $0.invitations[memory.person] }.sorted { $0.family < $1.family }
        }
    }

    func invitations(to family: String) async throws -> [Invitation] {
        try await memory.gateway.ask("family_invitations") { state in
            guard state.families[family]?.members[memory.person] == .parent else {
                throw AppError(.permission, "only a parent of the family may do this", field: "actor")
            }
            return state.families[family]?.invitations.values.sorted { $0.person < $1.person } ?? []
        }
    }

    func endInvitation(of person: String, to family: String) async throws -> Bool {
        let me = memory.person
        return try await memory.gateway.act("family_uninvite") { state in
            guard person == me || state.families[family]?.members[me] == .parent else {
                throw AppError(.permission, "only a parent of the family may do this", field: "actor")
            }
            guard state.families[family]?.invitations[person] != nil, !state.declined.contains([family, person]) else {
                return false
            }
            if person == me {
                return state.declined.insert([family, person]).inserted
            }
            state.families[family]?.invitations[person] = nil
            return true
        }
    }

    func move(_ family: String, to zone: String) async throws -> Bool {
        try await memory.gateway.act("family_zone") { state in
            guard state.families[family]?.members[memory.person] == .parent else {
                throw AppError(.permission, "only a parent of the family may do this", field: "actor")
            }
            guard TimeZone(identifier: zone) != nil else {
                throw AppError(.invalid, "the zone is unknown", field: "zone")
            }
            guard state.families[family]?.zone != zone else { return false }
            state.families[family]?.zone = zone
            return true
        }
    }

    func mine() async throws -> MyFamily {
        try await memory.gateway.ask("family_mine") { $0.myFamily(of: memory.person) }
    }

    func stream() -> AsyncThrowingStream<MyFamily, any Error> {
        memory.gateway.changes(for: memory.person, MyFamily.topics, since: nil)
            .following(read: { try await mine() }).withoutRepeats
    }
}
