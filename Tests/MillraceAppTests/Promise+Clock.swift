import Foundation
import TestSupport
import Testing

@testable import MillraceApp

extension Promise {
    /// How far phones' clocks are ahead, in seconds.
    static let wrongClocks: [Double] = [600, -600, 2 * 86_400, -2 * 86_400]

    /// A phone's clock may be wrong by minutes or days: nothing of what its person does is refused for that, and it counts for when it was done.
    func clock(_ people: People) async throws {
        let ben = people.ben
        try await people.makeFamily()
        let contact = EmergencyContact("mum", mail: "mum-\(people.anna.person)@example.org")
        _ = try await people.anna.emergency.setContact(contact)
        try await people.agree("mum", people.anna.person)
        _ = try await people.anna.checkIns.arm(WatchSettings(every: .seconds(3600), warnings: [], zone: "UTC"))
        let thread = try await people.anna.chat.begin(NewThread())
        let hobby = NewHobby("Chess", fact: "Nine hours once")
        _ = try await ben.hobbies.save(hobby)
        let card = try #require(try await people.anna.hobbies.cards(in: people.family).first)
        for shift in Self.wrongClocks {
            let anna = try await people.shifted(shift)
            func isNow(_ date: Date?) -> Bool { date.map { abs($0.timeIntervalSinceNow) < 300 } ?? false }
            func clock() -> Date { Date(timeIntervalSinceNow: shift) }
            let mood = NewMood(.calm, at: clock(), buffer: .zero)
            #expect(try await anna.moods.log(mood).value == mood.id, "\(shift)")
            #expect(try await anna.moods.log(mood).value == mood.id, "\(shift)")
            #expect(isNow(try await people.anna.moods.moods().first { $0.id == mood.id }?.at), "\(shift)")
            _ = try #require(try await anna.quests.complete(in: people.family, day: nil, at: clock()).value, "\(shift)")
            _ = try #require(try await anna.hobbies.answer(card.id, "chess", at: clock()).value, "\(shift)")
            let message = NewMessage("hello", to: thread, at: clock())
            #expect(try await anna.chat.send(message).value == message.id, "\(shift)")
            let sent = try await ben.chat.messages(in: thread).first { $0.id == message.id }
            #expect(isNow(sent?.at), "\(shift)")
            let due = try #require(try await anna.checkIns.checkIn(at: clock(), place: nil).value, "\(shift)")
            #expect(isNow(due.addingTimeInterval(-3600)), "\(shift)")
            #expect(isNow(try await people.anna.checkIns.state()?.lastCheckedIn), "\(shift)")
            let key = "water \(shift)"
            let notice = OwnNotice("water", key: key, at: clock().addingTimeInterval(7200))
            _ = try #require(try await anna.notifications.schedule(notice).value, "\(shift)")
            let moved = try await anna.notifications.move(key, to: clock().addingTimeInterval(9000)).value
            #expect(moved == true, "\(shift)")
        }
        for shift in Self.wrongClocks {
            let until = Date(timeIntervalSinceNow: shift + 7200)
            let paused = try #require(try await people.shifted(shift).checkIns.pause(until: until).value, "\(shift)")
            #expect(abs(paused.timeIntervalSinceNow - 10_800) < 300, "\(shift)")
        }
        #expect(try await ben.quests.today(in: people.family).completedBy.contains(people.anna.person))
    }
}
