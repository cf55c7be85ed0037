import Foundation
import TestSupport
import Testing

@testable import MillraceApp

/// Three people: Anna and Ben, who may be a family, and Eve, who is a stranger.
struct People: Sendable {
    let anna: AppClient
    let ben: AppClient
    let eve: AppClient
    /// A name that nothing else has.
    let family: String
    /// Anna's client on a phone whose clock is wrong by these seconds.
    let shifted: @Sendable (_ seconds: Double) async throws -> AppClient
    /// A contact follows the link that it got.
    let agree: @Sendable (_ contact: String, _ person: String) async throws -> Void

    func makeFamily() async throws {
        #expect(try await anna.families.create(family, zone: "UTC"))
        _ = try await anna.families.invite(ben.person, to: family, as: .teen)
        #expect(try await ben.families.join(family, as: .teen))
    }
}

/// What an app relies on. The doubles keep it as the gateway does: both are checked by the same code.
enum Promise: String, CaseIterable, Sendable {
    case families, moods, todaysLog, hobbies, quests, checkIns, emergency, alarmChanges, notifications, user, documents
    case documentStatus, feed, mail, chat, chatWithContact, lessons, pictures, clock
    case profile, myFamily, contacts, watching, alarmList, lessonData, many

    func check(_ people: People) async throws {
        switch self {
        case .families: try await families(people)
        case .moods: try await moods(people)
        case .todaysLog: try await todaysLog(people)
        case .hobbies: try await hobbies(people)
        case .quests: try await quests(people)
        case .checkIns: try await checkIns(people)
        case .emergency: try await emergency(people)
        case .alarmChanges: try await alarmChanges(people)
        case .notifications: try await notifications(people)
        case .user: try await user(people)
        case .documents: try await documents(people)
        case .documentStatus: try await documentStatus(people)
        case .feed: try await feed(people)
        case .mail: try await mail(people)
        case .chat: try await chat(people)
        case .chatWithContact: try await chatWithContact(people)
        case .lessons: try await lessons(people)
        case .pictures: try await pictures(people)
        case .clock: try await clock(people)
        case .profile: try await profile(people)
        case .myFamily: try await myFamily(people)
        case .contacts: try await contacts(people)
        case .watching: try await watching(people)
        case .alarmList: try await alarmList(people)
        case .lessonData: try await lessonData(people)
        case .many: try await many(people)
        }
    }

    /// The kind and the field that the call is refused with.
    func expect(
        _ kind: AppError.Kind, _ field: String? = nil, at location: SourceLocation = #_sourceLocation,
        _ call: () async throws -> Void
    ) async throws {
        let error = try await failure(as: AppError.self) { try await call() }
        #expect(error?.kind == kind, "\(rawValue)", sourceLocation: location)
        if let field { #expect(error?.field == field, "\(rawValue)", sourceLocation: location) }
        #expect(error?.userMessage.isEmpty == false, sourceLocation: location)
    }

    // MARK: families

    private func families(_ people: People) async throws {
        let (anna, ben, family) = (people.anna, people.ben, people.family)
        #expect(try await anna.families.create(family, zone: "Europe/London"))
        #expect(try await !anna.families.create(family, zone: "Europe/London"))
        try await expect(.permissionDenied) { _ = try await ben.families.join(family, as: .teen) }
        try await expect(.permissionDenied) {
            _ = try await ben.families.invite(people.eve.person, to: family, as: .teen)
        }
        let until = try await anna.families.invite(ben.person, to: family, as: .teen)
        #expect(until > Date(timeIntervalSinceNow: 13 * 86400))
        let invitations = try await ben.families.invitations()
        #expect(invitations.map(\.family) == [family] && invitations[0].invitedBy == anna.person)
        #expect(try await ben.families.join(family, as: .teen))
        #expect(try await ben.families.invitations() == [])
        #expect(try await ben.families.leave(family))
    }

    // MARK: moods

    private func moods(_ people: People) async throws {
        let (anna, ben) = (people.anna, people.ben)
        try await people.makeFamily()
        let first = NewMood(.happy, emoji: "😀", at: Date(timeIntervalSinceNow: -30), buffer: .zero)
        #expect(try await anna.moods.log(first).value == first.id)
        #expect(try await anna.moods.log(first).value == first.id)
        var other = first
        other.color = .sad
        try await expect(.alreadyExists, "id") { _ = try await anna.moods.log(other) }
        let kept = NewMood(.tired, at: Date(timeIntervalSinceNow: -20), buffer: .seconds(3600))
        #expect(try await anna.moods.log(kept).value == kept.id)
        let own = try await anna.moods.moods()
        #expect(own.map(\.id) == [kept.id, first.id] && own.map(\.color) == [.tired, .happy])
        #expect(own[1].emoji == "😀" && abs(own[1].at.timeIntervalSince(first.at)) < 0.001)
        #expect(abs(own[0].sharedAt.timeIntervalSince(own[0].at) - 3600) < 0.001)
        #expect(try await anna.moods.moods(of: nil, since: nil, after: kept.id).map(\.id) == [first.id])
        // The family sees what is not kept back any more; a stranger sees nothing.
        #expect(try await ben.moods.moods(of: anna.person).map(\.id) == [first.id])
        try await expect(.permissionDenied) { _ = try await people.eve.moods.moods(of: anna.person) }

        let streak = try await anna.moods.streak()
        #expect(streak.current == 1 && streak.moodsToday == 2 && streak.person == anna.person)
        #expect(try await anna.moods.streak(of: ben.person).moodsToday == 0)
        try await expect(.permissionDenied) { _ = try await ben.moods.streak(of: anna.person) }
        let week = try await anna.moods.weeklyStats()
        #expect(week.moods == 2 && week.moodDays == 1 && week.colors == ["happy": 1, "tired": 1])
        #expect(week.from <= streak.day && streak.day <= week.to && week.to == week.from.adding(days: 6))

        try await expect(.notFound, "id") { _ = try await ben.moods.delete(first.id) }
        #expect(try await anna.moods.delete(first.id).value == true)
        #expect(try await anna.moods.delete(first.id).value == false)
        #expect(try await anna.moods.moods().map(\.id) == [kept.id])
        try await expect(.invalidInput, "emoji") {
            _ = try await anna.moods.log(NewMood(.calm, emoji: String(repeating: "x", count: 200)))
        }
    }

    private func todaysLog(_ people: People) async throws {
        let mood = NewMood(.excited)
        var logs = people.anna.moods.todaysLog().makeAsyncIterator()
        #expect(try await logs.next()?.map(\.id) == [])
        _ = try await people.anna.moods.log(mood)
        #expect(try await logs.next()?.map(\.id) == [mood.id])
        _ = try await people.anna.moods.delete(mood.id)
        #expect(try await logs.next()?.map(\.id) == [])
    }

    // MARK: hobbies and quests

    private func hobbies(_ people: People) async throws {
        let (anna, ben, family) = (people.anna, people.ben, people.family)
        try await people.makeFamily()
        #expect(try await !anna.hobbies.presets().isEmpty)
        let before = try await anna.quests.points()
        let hobby = NewHobby("Chess", fact: "Nine hours once")
        #expect(try await anna.hobbies.save(hobby).value == hobby.id)
        #expect(try await anna.hobbies.save(hobby).value == hobby.id)
        try await expect(.alreadyExists, "id") { _ = try await anna.hobbies.save("chess", fact: "Another") }
        try await expect(.invalidInput, "name") { _ = try await anna.hobbies.save(" ", fact: "Nothing") }
        let quest = try await anna.quests.today(in: family)
        #expect(try await anna.quests.points() == before + 5 + (quest.kind == "share_hobby" ? 1 : 0))

        #expect(try await ben.hobbies.hobbies(in: family).map(\.name) == ["Chess"])
        #expect(try await ben.hobbies.markSeen(hobby.id).value == true)
        #expect(try await ben.hobbies.markSeen(hobby.id).value == false)
        #expect(try await anna.hobbies.hobbies().first?.seenBy == [ben.person])

        let card = try #require(try await ben.hobbies.cards(in: family).first)
        #expect(card.fact == "Nine hours once" && card.person == anna.person && !card.answered)
        try await expect(.permissionDenied, "card") { _ = try await anna.hobbies.answer(card.id, "chess") }
        let answer = try #require(try await ben.hobbies.answer(card.id, "chess").value)
        #expect(answer.right && answer.awarded == 2 && answer.name == "Chess" && answer.total == 3)
        let again = try #require(try await ben.hobbies.answer(card.id, "go").value)
        #expect(again.right && again.awarded == 0 && again.total == 3)
        #expect(try await ben.hobbies.cards(in: family).first?.answered == true)
        try await expect(.permissionDenied) { _ = try await people.eve.hobbies.cards(in: family) }
        try await expect(.notFound, "card") { _ = try await ben.hobbies.answer(UUID(), "chess") }
    }

    private func quests(_ people: People) async throws {
        let (anna, ben, family) = (people.anna, people.ben, people.family)
        try await people.makeFamily()
        let quest = try await anna.quests.today(in: family)
        #expect(quest.state == "open" && !quest.completed && quest.completedBy == [] && quest.family == family)
        #expect(["share_hobby", "daily_mood", "family_chat"].contains(quest.kind) && quest.endsAt > Date())
        let done = try #require(try await ben.quests.complete(in: family).value)
        #expect(done.awarded == 1 && done.total == 1 && done.day == quest.day)
        let again = try #require(try await ben.quests.complete(in: family).value)
        #expect(again.awarded == 0 && again.total == 1)
        #expect(try await anna.quests.today(in: family).completedBy == [ben.person])
        #expect(try await ben.quests.today(in: family).completed)
        #expect(try await ben.quests.history().map(\.completed) == [true])
        // A parent takes it back.
        let undone = try #require(try await anna.quests.undo(in: family, person: ben.person, day: nil).value)
        #expect(undone.total == 0 && undone.day == quest.day)
        #expect(try await ben.quests.points() == 0)
        #expect(try await anna.quests.points(of: ben.person) == 0)
        try await expect(.permissionDenied) { _ = try await people.eve.quests.today(in: family) }
        try await expect(.permissionDenied) { _ = try await ben.quests.points(of: anna.person) }
    }
}
