import Foundation
import MillraceApp
import Phones

/// A family app: Mia, a parent, and Tom, a teenager, with a phone each.
///
/// While Mia writes, the gateway and the worker are killed. Both go on: what they do waits on their phones and is told
/// later, once. Then both get a new phone, where all of it is again. deploy/examples/phones/run peachy runs it.
@main struct Peachy {
    static let family = "meyer"
    static let words = (1...24).map { "message \($0)" }

    let world: World
    var mia: Phone
    var tom: Phone

    static func main() async {
        await play {
            let world = try World()
            let (mia, tom) = (try await world.phone("mia", "phone"), try await world.phone("tom", "phone"))
            var peachy = Peachy(world: world, mia: mia, tom: tom)
            try await peachy.meet()
            let thread = try await peachy.share()
            try await peachy.write(in: thread)
            try await peachy.check(thread)
            try await peachy.tellAgain(thread)
            try await peachy.install(thread)
        }
    }

    /// Where it is noon now: the example has one day, whenever it runs.
    static var zone: String {
        let hours = 12 - Int(Date().timeIntervalSince1970 / 3600) % 24
        // The signs of these names are the other way round.
        return hours == 0 ? "UTC" : "Etc/GMT\(hours > 0 ? "-" : "+")\(abs(hours))"
    }

    /// They sign in, and become a family.
    func meet() async throws {
        for (phone, name) in [(mia, "Mia"), (tom, "Tom")] {
            try await phone.queue.register()
            let change = ProfileChange(displayName: name, locale: "en", zone: Self.zone)
            _ = try done("the profile", try await phone.app.profile.change(change))
        }
        let families = await Heard.of(mia.app.families.stream())
        let offers = await Heard.of(tom.app.families.stream())
        try expect("Mia creates a family", try await mia.app.families.create(Self.family, zone: Self.zone), true)
        _ = try await mia.app.families.invite("tom", to: Self.family, as: .teen)
        let offer = try await offers.first("the invitation") { $0.invitedTo.first?.family == "meyer" }
        try expect("Tom is invited by", offer.invitedTo.first?.invitedByName, "Mia")
        try expect("Tom joins", try await tom.app.families.join(Self.family, as: .teen), true)
        let joined = try await families.first("the member") { $0.members.count == 2 }
        try expect("Mia's family has", joined.members.compactMap(\.displayName), ["Mia", "Tom"])
    }

    /// A mood, a hobby that becomes a card, and a thread.
    func share() async throws -> UUID {
        let mood = try done(
            "the mood", try await mia.app.moods.log(NewMood(.happy, emoji: "🍑", buffer: .zero)))
        try expect("Tom sees Mia's mood", try await tom.app.moods.moods(of: "mia").map(\.id), [mood])
        let hobby = try done("the hobby", try await tom.app.hobbies.save("Chess", fact: "Nine hours once"))
        try expect(
            "Mia sees Tom's hobby", try await mia.app.hobbies.hobbies(in: Self.family).map(\.name), ["Chess"])
        try expect("it is new to her", try done("seeing", try await mia.app.hobbies.markSeen(hobby)), true)
        try await answerCard("Nine hours once", "chess")
        return try await mia.app.chat.begin(NewThread(title: "Home"))
    }

    func answerCard(_ fact: String, _ name: String) async throws {
        let cards = try await mia.app.hobbies.cards(in: Self.family).filter { $0.fact == fact && !$0.answered }
        guard let card = cards.first else { throw Wrong("there is no card of “\(fact)”") }
        let answer = try done("the answer", try await mia.app.hobbies.answer(card.id, name))
        try expect("the quiz: “\(fact)” is \(answer.name), and her answer was right", answer.right, true)
    }

    /// Mia writes while the power fails. Tom, too, goes on without a network.
    mutating func write(in thread: UUID) async throws {
        let heard = await Heard.of(tom.app.chat.newest(in: thread))
        var killing: Task<Void, any Error>?
        for (number, text) in Self.words.enumerated() {
            // From here on some arrive and some do not: nobody knows how many.
            if number == 6 { killing = Task { try await Operator.kill() } }
            if number == 18 { try await killing?.value }
            let sent = try await mia.app.chat.send(text, to: thread)
            if number < 6 { _ = try done("a message", sent) }
            if number >= 18 { try queued("a message", sent) }
        }
        say("in the middle of \(Self.words.count) messages the gateway and the worker are killed")
        for color in [MoodColor.calm, .tired, .excited] {
            try queued("a mood of Mia", try await mia.app.moods.log(NewMood(color, buffer: .zero)))
            try queued("a mood of Tom", try await tom.app.moods.log(NewMood(color, buffer: .zero)))
        }
        try queued("a quest of Mia", try await mia.app.quests.complete(in: Self.family))
        try queued("a quest of Tom", try await tom.app.quests.complete(in: Self.family))
        try queued("a hobby", try await tom.app.hobbies.save("Climbing", fact: "I am afraid of heights"))

        mia = try await mia.restarted(copy: "copy")
        tom = try await tom.restarted(copy: "copy")
        let kept = await (mia.queue.pending.count, tom.queue.pending.count)
        // Six messages at least, three moods and a quest; Tom's moods, quest and hobby.
        try expect("\(kept.0) operations wait on Mia's phone, also after a restart", kept.0 >= 10, true)
        try expect("operations wait on Tom's", kept.1, 5)

        try await Operator.start()
        let (hers, his) = (try await mia.tell(), try await tom.tell())
        let words: Set<OperationOutcome.Word> = [.applied, .same]
        try expect("all of Mia's are done", hers.allSatisfy { words.contains($0.word) && !$0.isSuperseded }, true)
        try expect("all of Tom's are done", his.map(\.word), Array(repeating: .applied, count: 5))
        let messages = try await heard.newest("the last message") { $0.first?.text == "message 24" }
        try expectSame(
            "Tom's open thread brings all \(messages.count) messages, in order",
            messages.reversed().compactMap(\.text), Self.words)
    }

    /// Everything is there, once.
    func check(_ thread: UUID) async throws {
        try await answerCard("I am afraid of heights", "climbing")
        let newest = try await tom.app.chat.messages(in: thread)
        try expect("messages have their numbers", newest.map(\.n), Array((1...24).reversed()))
        if let last = newest.first {
            try expect("unread", try done("reading", try await tom.app.chat.markRead(thread, upTo: last.id)), 0)
        }
        try expect(
            "all of them are read", Set(try await mia.app.chat.messages(in: thread).map(\.status)), [.read])
        let moods = try await tom.app.moods.moods(of: "mia").map(\.color)
        try expect("Mia's moods", moods, [.excited, .tired, .calm, .happy])
        try expect("Tom's moods", try await mia.app.moods.moods(of: "tom").map(\.color), [.excited, .tired, .calm])
        let quest = try await mia.app.quests.today(in: Self.family)
        try expect("“\(quest.title)” was done by", Set(quest.completedBy), ["mia", "tom"])
        // A point for the quest; five for each hobby, one for seeing it, two for each card.
        try expect("Tom's points", try await mia.app.quests.points(of: "tom"), 11)
        try expect("Mia's points", try await mia.app.quests.points(), 6)
    }

    /// As after a crash in which the phones forgot that they had told it: nothing happens twice.
    func tellAgain(_ thread: UUID) async throws {
        for phone in [mia, tom] {
            let before = try await Shown(phone.app, thread)
            let copy = try await world.phone(phone.app.person, "copy")
            let outcomes = try await copy.tell()
            await copy.queue.close()
            try expect(
                "\(outcomes.count) operations of \(phone.app.person), told again", Set(outcomes.map(\.word)), [.same])
            try expectSame("nothing has changed", try await Shown(phone.app, thread), before)
        }
    }

    /// Two new phones, with nothing on them.
    func install(_ thread: UUID) async throws {
        for phone in [mia, tom] {
            let person = phone.app.person
            let before = try await Shown(phone.app, thread)
            let new = try await world.phone(person, "new phone")
            try await new.queue.register()
            try expectSame("on a new phone \(person) has everything again", try await Shown(new.app, thread), before)
            try expect("and two devices", try await new.app.devices.list().compactMap(\.name), ["phone", "new phone"])
        }
        let eve = try await world.phone("eve", "phone").app
        try expect("a stranger has no family", try await eve.families.mine().family, nil)
        try expect("and no thread", try await eve.chat.threads(), [])
        try await refused("Mia's moods") { _ = try await eve.moods.moods(of: "mia") }
        try await refused("the family's thread") { _ = try await eve.chat.messages(in: thread) }
    }
}

/// All that the app shows to a person.
struct Shown: Equatable {
    let profile: Profile
    let family: MyFamily
    let moods: [Mood]
    let streak: MoodStreak
    let week: WeeklyStats
    let hobbies: [Hobby]
    let cards: [FlashCard]
    let quest: Quest
    let days: [QuestDay]
    let points: Int
    let messages: [ChatMessage]
    let threads: [ChatThread]

    init(_ app: AppClient, _ thread: UUID) async throws {
        profile = try await app.profile.mine()
        family = try await app.families.mine()
        moods = try await app.moods.moods()
        streak = try await app.moods.streak()
        week = try await app.moods.weeklyStats()
        hobbies = try await app.hobbies.hobbies(in: Peachy.family)
        cards = try await app.hobbies.cards(in: Peachy.family)
        quest = try await app.quests.today(in: Peachy.family)
        days = try await app.quests.history()
        points = try await app.quests.points()
        messages = try await app.chat.messages(in: thread)
        threads = try await app.chat.threads()
    }
}
