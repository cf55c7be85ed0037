import Foundation

struct LiveMoods: MoodService {
    let context: LiveContext
    private var me: AppValue { .string(context.person) }

    func log(_ mood: NewMood) async throws -> Submission<UUID> {
        try await context.submit(
            "mood_log",
            [
                "person": me, "color": .string(mood.color.rawValue), "emoji": AppValue(mood.emoji),
                "buffer": AppValue(mood.buffer), "id": AppValue(mood.id),
            ], at: mood.at, id: mood.id)
    }

    func log(_ moods: [NewMood]) async throws -> [UUID] {
        let given = moods.map { mood in
            let all: [String: AppValue] = [
                "person": me, "color": .string(mood.color.rawValue), "emoji": AppValue(mood.emoji),
                "at": AppValue(mood.at), "buffer": AppValue(mood.buffer), "id": AppValue(mood.id),
            ]
            return AppValue.object(all.filter { $0.value != .null })
        }
        return try await context.calls.act("mood_log_many", ["moods": .array(given)])
    }

    func delete(_ id: UUID) async throws -> Submission<Bool> {
        try await context.submit("mood_delete", ["id": AppValue(id)])
    }

    func moods(of person: String?, since: Date?, after: UUID?) async throws -> [Mood] {
        try await context.calls.ask(
            "moods",
            [
                "person": .string(person ?? context.person), "since": AppValue(since),
                "after": AppValue(after),
            ])
    }

    func todaysLog() -> AsyncThrowingStream<[Mood], any Error> {
        context.events(.moods).following {
            $0.data?["person"] == nil  // the family's moods say whose they are
        } read: {
            let today = try await streak(of: nil).day
            // By the gateway's day: the clock of this device may be wrong.
            let since = Date(timeIntervalSince1970: Double(today.number - 2) * 86400)
            return try await moods(of: nil, since: since, after: nil)
                .filter { $0.day == today }
        }
    }

    func streak(of person: String?) async throws -> MoodStreak {
        try await context.calls.ask("streak", ["person": .string(person ?? context.person)])
    }

    func weeklyStats(of person: String?, week: AppDay?) async throws -> WeeklyStats {
        try await context.calls.ask(
            "weekly_stats", ["person": .string(person ?? context.person), "week": AppValue(week)])
    }
}

struct LiveHobbies: HobbyService {
    let context: LiveContext
    private var me: AppValue { .string(context.person) }

    func presets() async throws -> [String] { try await context.calls.ask("hobby_presets") }

    func save(_ hobby: NewHobby) async throws -> Submission<UUID> {
        try await context.submit(
            "hobby_save",
            ["person": me, "name": .string(hobby.name), "fact": .string(hobby.fact), "id": AppValue(hobby.id)])
    }

    func hobbies(in family: String?, after: UUID?) async throws -> [Hobby] {
        // The family is a parameter that must be there, also as null.
        try await context.calls.askAll("hobbies", ["family": AppValue(family), "after": AppValue(after)])
    }

    func markSeen(_ hobby: UUID) async throws -> Submission<Bool> {
        try await context.submit("hobby_seen", ["hobby": AppValue(hobby), "person": me])
    }

    func cards(in family: String, after: UUID?) async throws -> [FlashCard] {
        try await context.calls.ask("cards", ["family": .string(family), "after": AppValue(after)])
    }

    func answer(_ card: UUID, _ answer: String, at: Date) async throws -> Submission<CardAnswer> {
        try await context.submit(
            "card_answer", ["card": AppValue(card), "person": me, "answer": .string(answer)], at: at)
    }
}

struct LiveQuests: QuestService {
    let context: LiveContext
    private var me: AppValue { .string(context.person) }

    func today(in family: String) async throws -> Quest {
        try await context.calls.ask("quest_today", ["family": .string(family)])
    }

    func complete(in family: String, day: AppDay?, at: Date) async throws -> Submission<QuestResult> {
        try await context.submit(
            "quest_complete", ["family": .string(family), "person": me, "day": AppValue(day)], at: at)
    }

    func complete(_ days: [AppDay], in family: String) async throws -> [QuestResult] {
        let given = days.map { AppValue.object(["family": .string(family), "person": me, "day": AppValue($0)]) }
        return try await context.calls.act("quest_complete_many", ["completions": .array(given)])
    }

    func streamToday(in family: String) -> AsyncThrowingStream<Quest, any Error> {
        context.following(.quests) { try await today(in: family) }
    }

    func undo(in family: String, person: String?, day: AppDay?) async throws -> Submission<QuestResult> {
        try await context.submit(
            "quest_undo",
            ["family": .string(family), "person": .string(person ?? context.person), "day": AppValue(day)])
    }

    func history(of person: String?, after: AppDay?) async throws -> [QuestDay] {
        try await context.calls.ask(
            "quest_history", ["person": .string(person ?? context.person), "after": AppValue(after)])
    }

    func points(of person: String?) async throws -> Int {
        try await context.calls.ask("points", ["person": .string(person ?? context.person)])
    }
}

struct LiveFamilies: FamilyService {
    let context: LiveContext

    func create(_ family: String, zone: String) async throws -> Bool {
        try await context.calls.act("family_create", ["family": .string(family), "zone": .string(zone)])
    }

    func invite(_ person: String, to family: String, as role: FamilyRole) async throws -> Date {
        try await context.calls.act(
            "family_invite",
            ["family": .string(family), "person": .string(person), "role": .string(role.rawValue)])
    }

    func join(_ family: String, as role: FamilyRole) async throws -> Bool {
        try await context.calls.act(
            "family_join",
            ["family": .string(family), "person": .string(context.person), "role": .string(role.rawValue)])
    }

    func leave(_ family: String) async throws -> Bool {
        try await context.calls.act(
            "family_leave", ["family": .string(family), "person": .string(context.person)])
    }

    func invitations() async throws -> [Invitation] {
        try await context.calls.ask("family_invitations", ["of_person": .string(context.person)])
    }

    func invitations(to family: String) async throws -> [Invitation] {
        try await context.calls.ask("family_invitations", ["of_family": .string(family)])
    }

    func endInvitation(of person: String, to family: String) async throws -> Bool {
        try await context.calls.act("family_uninvite", ["family": .string(family), "person": .string(person)])
    }

    func move(_ family: String, to zone: String) async throws -> Bool {
        try await context.calls.act("family_zone", ["family": .string(family), "zone": .string(zone)])
    }

    func mine() async throws -> MyFamily { try await context.calls.ask("family_mine") }

    func stream() -> AsyncThrowingStream<MyFamily, any Error> {
        context.changes(MyFamily.topics, since: nil).following(read: { try await mine() }).withoutRepeats
    }
}
