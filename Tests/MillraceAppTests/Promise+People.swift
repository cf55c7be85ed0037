import Foundation
import TestSupport
import Testing

@testable import MillraceApp

/// Who people are to each other: profiles, families, contacts, and whom one watches over.
extension Promise {
    func profile(_ people: People) async throws {
        let (anna, ben) = (people.anna, people.ben)
        var profiles = anna.profile.stream().makeAsyncIterator()
        #expect(try await profiles.next()?.displayName == nil)
        let change = ProfileChange(
            displayName: "Anna", avatar: "https://a.example/anna.png", locale: "de-AT", zone: "Europe/Vienna",
            reminderHour: 18, map: "apple")
        #expect(try await anna.profile.change(change).value == true)
        let mine = try await anna.profile.mine()
        #expect(mine == (try await profiles.next()))
        #expect(mine.person == anna.person && mine.displayName == "Anna" && mine.locale == "de-AT")
        #expect(mine.zone == "Europe/Vienna" && mine.reminderHour == 18 && mine.map == "apple")
        #expect(mine.avatar == "https://a.example/anna.png" && mine.family == nil)
        // Each field by itself; an empty text clears it.
        #expect(try await anna.profile.change(ProfileChange(locale: "", reminderHour: -1)).value == true)
        let now = try await anna.profile.mine()
        #expect(now.locale == nil && now.reminderHour == nil && now.displayName == "Anna")
        #expect(try await anna.profile.picture() == URL(string: "https://a.example/anna.png"))
        try await expect(.permissionDenied, "actor") { _ = try await ben.profile.of(anna.person) }
        try await people.makeFamily()
        #expect(try await ben.profile.of(anna.person).displayName == "Anna")
        #expect(try await anna.profile.mine().role == .parent)
    }

    func myFamily(_ people: People) async throws {
        let (anna, ben, eve, family) = (people.anna, people.ben, people.eve, people.family)
        #expect(try await anna.families.mine().family == nil)
        try await people.makeFamily()
        let mine = try await anna.families.mine()
        #expect(mine.family == family && mine.role == .parent && mine.zone == "UTC" && mine.person == anna.person)
        #expect(Set(mine.members.map(\.person)) == [anna.person, ben.person] && mine.invited == [])
        #expect(mine.members.first { $0.person == ben.person }?.role == .teen)
        _ = try await anna.families.invite(eve.person, to: family, as: .parent)
        #expect(try await anna.families.mine().invited.map(\.person) == [eve.person])
        #expect(try await anna.families.invitations(to: family).map(\.person) == [eve.person])
        try await expect(.permissionDenied) { _ = try await ben.families.invitations(to: family) }
        #expect(try await eve.families.mine().invitedTo.map(\.family) == [family])
        #expect(try await ben.families.mine().invited == [])
        #expect(try await eve.families.endInvitation(of: eve.person, to: family))
        #expect(try await anna.families.mine().invited.first?.declinedAt != nil)
        // It stays, so that nobody asks again and again.
        #expect(try await !anna.families.endInvitation(of: eve.person, to: family))
        #expect(try await anna.families.mine().invited.map(\.person) == [eve.person])
        #expect(try await anna.families.move(family, to: "Europe/Vienna"))
        #expect(try await !anna.families.move(family, to: "Europe/Vienna"))
        try await expect(.permissionDenied) { _ = try await ben.families.move(family, to: "UTC") }
        #expect(try await ben.families.mine().zone == "Europe/Vienna")
    }

    func contacts(_ people: People) async throws {
        let (anna, ben) = (people.anna, people.ben)
        var lists = anna.contacts.stream().makeAsyncIterator()
        #expect(try await lists.next() == [])
        let contact = EmergencyContact(ben.person, step: 2, push: true, wait: .seconds(120))
        #expect(try await anna.emergency.setContact(contact).value == 0)
        let listed = try #require(try await lists.next()?.first)
        #expect(listed.contact == ben.person && listed.step == 2 && listed.shares == "nothing")
        #expect(listed.waitSeconds == 120 && listed.name == nil)
        #expect(
            try await anna.contacts.describe(ben.person, name: "Benny", label: "friends", shares: .times).value == true)
        let described = try #require(try await anna.contacts.list().first)
        #expect(described.name == "Benny" && described.label == "friends" && described.shares == "times")
        #expect(try await anna.contacts.describe(ben.person, label: "").value == true)
        #expect(try await anna.contacts.list().first?.label == nil)
        try await expect(.notFound, "contact") { _ = try await anna.contacts.describe("nobody", name: "x") }
        #expect(try await anna.emergency.removeContact(ben.person).value == true)
        #expect(try await anna.contacts.list() == [])
    }

    func watching(_ people: People) async throws {
        let (anna, ben) = (people.anna, people.ben)
        #expect(try await ben.watch.watched() == WatchedPage(people: []))
        _ = try await anna.emergency.setContact(EmergencyContact(ben.person, push: true))
        _ = try await anna.contacts.describe(ben.person, shares: .times)
        let request = try #require(try await ben.watch.requests().people.first)
        #expect(request.person == anna.person && request.consent == "asked" && request.shares == nil)
        var watched = ben.watch.stream().makeAsyncIterator()
        #expect(try await watched.next() == [])
        #expect(try await ben.watch.accept(anna.person).value == 1)
        let seen = try #require(try await watched.next()?.first)
        #expect(seen.person == anna.person && seen.consent == "given" && seen.shares == "times")
        #expect(seen.state == "disarmed" && seen.alarms == [])
        #expect(try await ben.watch.requests().people == [])
        #expect(try await anna.checkIns.arm(WatchSettings(warnings: [])).value != nil)
        let armed = try #require(try await ben.watch.watched().people.first)
        #expect(armed.state == "armed" && armed.checkInExpiration != nil)
        #expect(try await ben.watch.decline(anna.person).value == 1)
        #expect(try await ben.watch.watched().people == [])
        try await expect(.notFound) { _ = try await ben.watch.accept(people.eve.person) }
    }

    func alarmList(_ people: People) async throws {
        let (anna, ben) = (people.anna, people.ben)
        _ = try await anna.emergency.setContact(EmergencyContact(ben.person, push: true))
        #expect(try await ben.watch.accept(anna.person).value == 1)
        var open = ben.alarms.stream().makeAsyncIterator()
        #expect(try await open.next() == [])
        let place = CheckInPlace(latitude: 47.8, longitude: 13.05, accuracy: 20)
        let help = try #require(try await anna.emergency.help(note: "at the lake", place: place).value)
        let heard = try #require(try await open.next()?.first)
        #expect(heard.id == help.alarm && heard.person == anna.person && !heard.isOwn && heard.cause == "help")
        #expect(heard.place?.latitude == 47.8 && heard.place?.accuracy == 20)
        #expect(heard.title?.contains("asks for help") == true && heard.body?.contains("at the lake") == true)
        _ = try await ben.emergency.respond(to: help.alarm, .onMyWay)
        let own = try await anna.alarms.show(help.alarm)
        #expect(own.isOwn && own.state == "acknowledged" && own.answers?.map(\.answer) == ["on_my_way"])
        #expect(try await ben.alarms.show(help.alarm).answer == "on_my_way")
        _ = try await anna.emergency.respond(to: help.alarm, .safe)
        #expect(try await anna.alarms.list(isOpen: true).alarms == [])
        #expect(try await anna.alarms.list(isOpen: false).alarms.map(\.state) == ["resolved"])
        try await expect(.notFound, "alarm") { _ = try await people.eve.alarms.show(help.alarm) }
    }

    func lessonData(_ people: People) async throws {
        let anna = people.anna
        let name = "lesson-\(people.family)"
        var news = anna.lessons.streamLessons().makeAsyncIterator()
        // From now on: the stream is open when the first one comes.
        let opening = Task {
            var turn = 0
            while !Task.isCancelled {
                turn += 1
                _ = try await anna.lessons.put("opening", title: "\(turn)")
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        _ = try await news.next()
        opening.cancel()
        _ = try? await opening.value
        let data: [String: AppValue] = ["room_number": 3, "teacher": ["name": "Ada"]]
        #expect(try await anna.lessons.put(name, title: "Algebra", data: data).value == .created)
        #expect(try await anna.lessons.lesson(name).data == data)
        #expect(try await anna.lessons.put(name, title: nil, data: data).value == .unchanged)
        while let one = try await news.next() {
            guard one.update.lesson == name else { continue }
            #expect(one.update.change == .created && one.lesson?.title == "Algebra" && one.lesson?.data == data)
            break
        }
        #expect(try await anna.lessons.delete(name).value == true)
        #expect(try await anna.lessons.delete(name).value == false)
        while let one = try await news.next(), one.update.change != .deleted {}
    }

    func many(_ people: People) async throws {
        let (anna, ben, family) = (people.anna, people.ben, people.family)
        try await people.makeFamily()
        let moods = [NewMood(.calm), NewMood(.happy)]
        #expect(try await anna.moods.log(moods) == moods.map(\.id))
        #expect(Set(try await anna.moods.moods().map(\.id)) == Set(moods.map(\.id)))
        let quest = try await ben.quests.today(in: family)
        #expect(try await ben.quests.complete([quest.day], in: family).map(\.day) == [quest.day])
        #expect(try await ben.quests.today(in: family).completed)
        let thread = try await anna.chat.begin(NewThread(with: [ben.person]))
        let sent = try #require(try await anna.chat.send("Hello", to: thread).value)
        #expect(try await anna.chat.status(of: sent) == [MessageReader(person: ben.person, status: .sent)])
        _ = try await ben.chat.markRead(thread, upTo: sent)
        #expect(try await anna.chat.status(of: sent) == [MessageReader(person: ben.person, status: .read)])
        let page = try await anna.changes(of: [.moods], since: 0)
        #expect(page.filter { $0.change == "logged" }.count >= 2 && page.allSatisfy { $0.topic == "moods" })
        try await expect(.notFound) { _ = try await ben.chat.status(of: sent) }
        #expect(try await !anna.flags.isOn("new-\(family)"))
        #expect(abs(try await anna.flags.time().timeIntervalSinceNow) < 3600)
        #expect(try await anna.subscriptions.mine().subscriptions == [])
    }
}
