import Foundation

struct MemoryMoods: MoodService {
    let memory: MemoryContext

    func log(_ mood: NewMood) async throws -> Submission<UUID> {
        let (person, clock) = (memory.person, memory.clock)
        return try await memory.gateway.submit("mood_log") { try $0.log(mood, by: person, clock) }
    }

    func log(_ moods: [NewMood]) async throws -> [UUID] {
        let (person, clock) = (memory.person, memory.clock)
        return try await memory.gateway.act("mood_log_many") { state in
            try moods.map { try state.log($0, by: person, clock) }
        }
    }

    func delete(_ id: UUID) async throws -> Submission<Bool> {
        let person = memory.person
        return try await memory.gateway.submit("mood_delete") { state in
            guard let old = state.moods[id], old.person == person else {
                throw AppError(.not_found, "there is no mood \(id) of this person", field: "id")
            }
            guard !old.isDeleted else { return false }
            state.moods[id]?.isDeleted = true
            state.told(id, "deleted", [:], by: person, toFamily: old.mood.sharedAt <= state.now())
            return true
        }
    }

    func moods(of person: String?, since: Date?, after: UUID?) async throws -> [Mood] {
        let me = memory.person
        return try await memory.gateway.ask("moods") { state in
            let person = person ?? me
            let mine = state.family(of: me)?.name
            guard person == me || (mine != nil && state.family(of: person)?.name == mine) else {
                throw AppError(.permission, "only the family may see these moods", field: "actor")
            }
            let all = state.moods.values
                .filter { stored in
                    stored.person == person && !stored.isDeleted && (since.map { stored.mood.at >= $0 } ?? true)
                        && (person == me || (stored.family == mine && stored.mood.sharedAt <= state.now()))
                }
                .map(\.mood).sorted { ($0.at, $0.id.uuidString) > ($1.at, $1.id.uuidString) }
            guard let after else { return all }
            guard all.contains(where: { $0.id == after }) else {
                throw AppError(.not_found, "there is no such mood", field: "after")
            }
            return Array(all.drop { $0.id != after }.dropFirst())
        }
    }

    func todaysLog() -> AsyncThrowingStream<[Mood], any Error> {
        memory.gateway.changes(for: memory.person, [.moods], since: nil).following {
            $0.data?["person"] == nil  // the family's moods say whose they are
        } read: {
            let today = try await memory.gateway.ask("moods") { $0.today(of: memory.person) }
            return try await moods().filter { $0.day == today }
        }
    }

    func streak(of person: String?) async throws -> MoodStreak {
        let me = memory.person
        return try await memory.gateway.ask("streak") { state in
            let person = try state.seenPerson(person, by: me)
            let today = state.today(of: person)
            let days = Set(state.moods.values.filter { $0.person == person && !$0.isDeleted }.map(\.mood.day))
            var current = 0
            var day = days.contains(today) ? today : today.adding(days: -1)
            while days.contains(day) { (current, day) = (current + 1, day.adding(days: -1)) }
            var best = 0
            for first in days where !days.contains(first.adding(days: -1)) {
                var (length, day) = (0, first)
                while days.contains(day) { (length, day) = (length + 1, day.adding(days: 1)) }
                best = max(best, length)
            }
            let moods = state.moods.values.filter { $0.person == person && !$0.isDeleted && $0.mood.day == today }
            return MoodStreak(
                person: person, day: today, current: current, best: best, freezes: 0, moodsToday: moods.count)
        }
    }

    func weeklyStats(of person: String?, week: AppDay?) async throws -> WeeklyStats {
        let me = memory.person
        return try await memory.gateway.ask("weekly_stats") { state in
            let person = try state.seenPerson(person, by: me)
            let day = week ?? state.today(of: person)
            // 1970-01-01 was a Thursday; the week begins on Monday.
            let first = day.adding(days: -((day.number + 3) % 7 + 7) % 7)
            let last = first.adding(days: 6)
            let moods = state.moods.values
                .filter { $0.person == person && !$0.isDeleted && (first...last).contains($0.mood.day) }.map(\.mood)
            func isInWeek(_ at: Date) -> Bool { (first...last).contains(state.day(of: at, person)) }
            let quests = state.completions.values.flatMap { $0.filter { (first...last).contains($0.key) }.values }
            return WeeklyStats(
                person: person, from: first, to: last, moods: moods.count, moodDays: Set(moods.map(\.day)).count,
                colors: Dictionary(grouping: moods, by: \.color.rawValue).mapValues(\.count),
                quests: quests.filter { $0[person] != nil }.count,
                hobbies: state.hobbies.values.filter { $0.person == person && isInWeek($0.at) }.count,
                cards: state.cards.values.filter { $0.answers[person] != nil }.count, points: state.total(of: person))
        }
    }
}

extension MemoryState {
    /// Oneself, or as a parent a member of the family.
    func seenPerson(_ person: String?, by me: String) throws -> String {
        guard let person, person != me else { return me }
        guard let mine = family(of: me), mine.family.members[me] == .parent, mine.family.members[person] != nil else {
            throw AppError(.permission, "only that person and the family's parents may see this", field: "actor")
        }
        return person
    }

    mutating func log(_ mood: NewMood, by person: String, _ clock: DeviceClock? = nil) throws -> UUID {
        let at = happened(mood.at, clock)
        if let old = moods[mood.id] {
            var same = old.given
            same.at = mood.at
            // A later one may have counted as now.
            guard old.person == person, same == mood, at >= old.mood.at.addingTimeInterval(-120) else {
                throw AppError(.conflict, "mood \(mood.id) is already logged with different content", field: "id")
            }
            return mood.id
        }
        if let emoji = mood.emoji, emoji.isEmpty || emoji.count > 16 {
            throw AppError(.invalid, "the emoji is empty or too long", field: "emoji")
        }
        let day = day(of: at, person)
        let family = family(of: person)?.name
        let stored = Mood(
            id: mood.id, day: day, color: mood.color, emoji: mood.emoji, at: at,
            sharedAt: at.addingTimeInterval((mood.buffer ?? .seconds(1800)).inSeconds))
        moods[mood.id] = StoredMood(person: person, family: family, given: mood, mood: stored)
        told(
            mood.id, "logged", ["color": .string(mood.color.rawValue), "day": AppValue(day)], by: person,
            toFamily: stored.sharedAt <= now())
        doQuest(of: "daily_mood", by: person, at: at)
        return mood.id
    }

    /// The person's own row, and the others', which say whose mood it is.
    mutating func told(_ id: UUID, _ change: String, _ data: [String: AppValue], by person: String, toFamily: Bool) {
        let ref = id.uuidString.lowercased()
        changed(.moods, ref, change, for: [person], .object(data))
        guard toFamily else { return }
        let others = relatives(of: person).filter { $0 != person }
        changed(.moods, ref, change, for: others, .object(data.merging(["person": .string(person)]) { $1 }))
    }

    // MARK: quests

    func questKind(_ day: AppDay) -> (kind: String, title: String) {
        quests[day] ?? ("share_hobby", "Share a hobby")
    }

    /// Something was done that completes today's quest, if it is of this kind.
    mutating func doQuest(of kind: String, by person: String, at: Date) {
        guard let family = family(of: person)?.name, questKind(day(of: at, person)).kind == kind else { return }
        _ = complete(family, day(of: at, person), by: person, at: at)
    }

    mutating func complete(_ family: String, _ day: AppDay, by person: String, at: Date) -> Int {
        guard completions[family, default: [:]][day, default: [:]][person] == nil else { return 0 }
        completions[family, default: [:]][day, default: [:]][person] = at
        changed(
            .quests, "\(family):\(day)", "completed", for: relatives(of: person), ["person": .string(person)])
        return award(person, "quest:\(family):\(day)", 1)
    }
}
