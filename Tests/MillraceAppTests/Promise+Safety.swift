import Foundation
import TestSupport
import Testing

@testable import MillraceApp

extension Promise {
    // MARK: check-ins and emergencies

    private static let lake = CheckInPlace(latitude: 47.8095, longitude: -13.055, accuracy: 12)

    func checkIns(_ people: People) async throws {
        let anna = people.anna
        #expect(try await anna.checkIns.state() == nil)
        // Before anybody has agreed a check-in counts, and the interval can be chosen; nothing waits for the next.
        let alone = try #require(try await anna.checkIns.checkIn().value)
        #expect(abs(alone.timeIntervalSinceNow - 3600) < 600)
        _ = try await anna.checkIns.setInterval(.seconds(1800))
        #expect(try await anna.checkIns.state()?.state == "disarmed")
        #expect(try await anna.checkIns.state()?.interval == .seconds(1800))
        let settings = WatchSettings(every: .seconds(3600), grace: .seconds(60), warnings: [], zone: "Europe/Berlin")
        try await expect(.alreadyExists) { _ = try await anna.checkIns.arm(settings) }
        let contact = EmergencyContact("mum", mail: "mum-\(anna.person)@example.org")
        #expect(try await anna.emergency.setContact(contact).value == 0)
        try await people.agree("mum", anna.person)
        #expect(try await anna.emergency.setContact(contact).value == 1)

        let armed = try #require(try await anna.checkIns.arm(settings).value)
        #expect(abs(armed.timeIntervalSinceNow - 3600) < 600)
        let later = try #require(try await anna.checkIns.checkIn(place: Self.lake).value)
        #expect(later >= armed)
        let state = try #require(try await anna.checkIns.state())
        #expect(state.state == "armed" && state.interval == .seconds(3600) && state.alarms == [])
        #expect(try abs(#require(state.checkInExpiration).timeIntervalSince(later)) < 0.001)
        #expect(state.contacts.map(\.contact) == ["mum"] && state.contacts[0].channels?.first?.consent == "given")

        let shorter = try #require(try await anna.checkIns.setInterval(.seconds(600)).value ?? nil)
        #expect(shorter < later)
        let pause = Date(timeIntervalSinceNow: 7200)
        let paused = try #require(try await anna.checkIns.pause(until: pause).value)
        #expect(abs(paused.timeIntervalSince(pause) - 600) < 0.001)
        try await expect(.invalidInput, "until") { _ = try await anna.checkIns.pause(until: .distantPast) }
        #expect(try await anna.checkIns.disarm().value == true)
        #expect(try await anna.checkIns.disarm().value == false)
        try await expect(.alreadyExists) { _ = try await anna.checkIns.checkIn() }
        #expect(try await anna.checkIns.state()?.state == "disarmed")
    }

    func emergency(_ people: People) async throws {
        let (anna, ben) = (people.anna, people.ben)
        let alone = try #require(try await anna.emergency.help(note: "at the lake").value)
        #expect(alone.reachesNobody && alone.told == [] && alone.placeUsed == nil)
        // Help is called with a place, and also with one that cannot be right.
        #expect(try await anna.emergency.help(place: Self.lake).value?.placeUsed == true)
        for (latitude, longitude) in [(90.5, 0.0), (0, -180.5), (.nan, 0), (0, .infinity)] {
            let nowhere = CheckInPlace(latitude: latitude, longitude: longitude)
            let again = try #require(try await anna.emergency.help(note: nil, place: nowhere).value)
            #expect(again.alarm == alone.alarm && again.placeUsed == false)
        }
        #expect(try await anna.emergency.respond(to: alone.alarm, .safe).value == "resolved")
        try await expect(.invalidInput, "contact") {
            _ = try await anna.emergency.setContact(EmergencyContact(anna.person, push: true))
        }
        try await expect(.invalidInput, "channels") {
            _ = try await anna.emergency.setContact(EmergencyContact("nobody"))
        }
        _ = try await anna.emergency.setContact(EmergencyContact(ben.person, push: true))
        #expect(try await ben.emergency.accept(anna.person, agrees: true).value == 1)
        let help = try #require(try await anna.emergency.help().value)
        #expect(help.told == [ben.person] && !help.reachesNobody && help.alarm != alone.alarm)
        #expect(try await anna.checkIns.state()?.alarms.map(\.id) == [help.alarm])
        try await expect(.notFound, "alarm") { _ = try await people.eve.emergency.respond(to: help.alarm, .safe) }
        try await expect(.invalidInput, "answer") {
            _ = try await anna.emergency.respond(to: help.alarm, .onMyWay)
        }
        #expect(try await ben.emergency.respond(to: help.alarm, .onMyWay).value == "acknowledged")
        #expect(try await anna.emergency.respond(to: help.alarm, .safe).value == "resolved")
        #expect(try await anna.checkIns.state()?.alarms == [])
        #expect(try await anna.emergency.removeContact(ben.person).value == true)
    }

    func alarmChanges(_ people: People) async throws {
        let (anna, ben) = (people.anna, people.ben)
        _ = try await anna.emergency.setContact(EmergencyContact(ben.person, push: true))
        #expect(try await ben.emergency.accept(anna.person, agrees: true).value == 1)
        // Both are told; the first event says that the stream is open.
        var feed = ben.feed.changes(.alarms).makeAsyncIterator()
        guard case .ready = try await feed.next() else {
            Issue.record("the stream did not begin with ready")
            return
        }
        let help = try #require(try await anna.emergency.help().value)
        let first = try await nextChange(&feed) { $0.ref == help.alarm.uuidString.lowercased() }
        #expect(first?.topic == "alarms" && first?.change == "raised")
        _ = try await anna.emergency.respond(to: help.alarm, .safe)
        let last = try await nextChange(&feed) { $0.change == "resolved" }
        #expect(last?.ref == help.alarm.uuidString.lowercased())
    }

    /// The next change of which this holds.
    private func nextChange(
        _ feed: inout AsyncThrowingStream<FeedEvent, any Error>.Iterator, where holds: (FeedChange) -> Bool
    ) async throws -> FeedChange? {
        while let event = try await feed.next() {
            if case .change(let change) = event, holds(change) { return change }
        }
        return nil
    }

    // MARK: notices and the person

    func notifications(_ people: People) async throws {
        let (anna, ben) = (people.anna, people.ben)
        let token = "token-of-\(anna.person)-0123456789"
        #expect(try await anna.notifications.addDevice(token, .fcm, app: "org.example.app").value == true)
        #expect(try await anna.notifications.addDevice(token, .fcm, app: "org.example.app").value == false)
        try await expect(.invalidInput, "token") { _ = try await anna.notifications.addDevice("x", .apns, app: nil) }
        #expect(try await ben.notifications.removeDevice(token).value == false)
        #expect(try await anna.notifications.removeDevice(token).value == true)
        let preferences = NoticePreferences(
            zone: "Europe/Berlin", quietFrom: "22:00", quietTo: "07:00", kinds: ["daily_reminder": ["push"]],
            locale: "de")
        _ = try await anna.notifications.setPreferences(preferences)
        try await expect(.invalidInput, "zone") {
            _ = try await anna.notifications.setPreferences(NoticePreferences(zone: "Moon/Base", locale: "de"))
        }

        let notice = OwnNotice("water", key: "water-1", at: Date(timeIntervalSinceNow: 7200), title: "Drink something")
        let id = try #require(try await anna.notifications.schedule(notice).value)
        #expect(try await anna.notifications.schedule(notice).value == id)
        #expect(try await anna.notifications.move("water-1", to: Date(timeIntervalSinceNow: 9000)).value == true)
        #expect(try await anna.notifications.cancel("water-1").value == true)
        #expect(try await anna.notifications.cancel("water-1").value == false)
        #expect(try await anna.notifications.cancel("never").value == false)
        try await expect(.invalidInput, "at") {
            _ = try await anna.notifications.schedule(OwnNotice("water", key: "water-2", at: .distantPast))
        }
        #expect(try await anna.notifications.scheduleDailyReminder(atHour: 8).value == true)
        try await expect(.invalidInput, "reminder_hour") {
            _ = try await anna.notifications.scheduleDailyReminder(atHour: 24)
        }
    }

    func user(_ people: People) async throws {
        let anna = people.anna
        #expect(
            try await anna.user.setProfile(displayName: "Anna", locale: "de-AT", zone: "Europe/Vienna").value == true)
        #expect(try await anna.user.setProfile(displayName: "Anna", locale: nil, zone: "").value == true)
        try await expect(.invalidInput, "zone") {
            _ = try await anna.user.setProfile(displayName: nil, locale: nil, zone: "Moon/Base")
        }
        _ = try await anna.moods.log(.calm)
        try await anna.user.deleteAccount()
        #expect(try await anna.moods.moods() == [])
    }

    // MARK: documents

    private static let page = Data("%PDF-1.4 not a real one".utf8)

    func documents(_ people: People) async throws {
        let (anna, eve) = (people.anna, people.eve)
        var details = DocumentDetails(title: "Railways", lessonID: "lesson-\(anna.person)")
        details.languages = ["eng"]
        let file = DocumentFile(Self.page, name: "railways.pdf", mimeType: "application/pdf")
        let id = try await anna.documents.upload(file, details)
        #expect(id == details.id)
        let document = try await anna.documents.document(id)
        #expect(document.title == "Railways" && document.status == .processing && document.size == Self.page.count)
        #expect(document.lessonId == details.lessonID && document.mimeType == "application/pdf")
        #expect(try await anna.documents.documents().map(\.id) == [id])
        #expect(try await anna.documents.documents(DocumentFilter(lessonID: "another")) == [])
        #expect(try await anna.documents.contents(id, .original) == Self.page)
        #expect(try await anna.documents.text(id) == "")
        try await expect(.alreadyExists) { _ = try await anna.documents.link(id, .pdf) }
        try await expect(.notFound, "id") { _ = try await eve.documents.document(id) }
        try await expect(.notFound, "id") { _ = try await eve.documents.link(id, .original) }
        try await expect(.alreadyExists) { _ = try await anna.documents.retry(id) }

        var elsewhere = DocumentDetails(title: "Elsewhere")
        let address = "https://files.example.org/\(anna.person).pdf"
        #expect(try await anna.documents.register(storageURL: address, elsewhere) == elsewhere.id)
        #expect(try await anna.documents.register(storageURL: address, elsewhere) == elsewhere.id)
        elsewhere.title = "Somewhere else"
        try await expect(.alreadyExists, "id") { _ = try await anna.documents.register(storageURL: address, elsewhere) }
        try await expect(.invalidInput, "storage_url") {
            _ = try await anna.documents.register(storageURL: "ftp://a", DocumentDetails())
        }
        try await expect(.notFound, "storage_url") {
            _ = try await anna.documents.register(
                storageURL: "upload:\(UUID().uuidString.lowercased())", DocumentDetails())
        }

        var progress: [DeleteProgress] = []
        let many = [id, elsewhere.id] + (0..<10).map { _ in UUID() }
        for try await one in anna.documents.delete(many) { progress.append(one) }
        #expect(progress == [DeleteProgress(done: 10, total: 12), DeleteProgress(done: 12, total: 12)])
        #expect(try await anna.documents.documents() == [])
    }

    func documentStatus(_ people: People) async throws {
        let anna = people.anna
        let id = try await anna.documents.upload(
            DocumentFile(Self.page, name: "scan.pdf", mimeType: "application/pdf"), DocumentDetails())
        var stages = anna.documents.streamProcessingStatus(id).makeAsyncIterator()
        let first = try await stages.next()
        #expect(first?.status == .processing && first?.stage == "receive" && first?.title == "scan.pdf")
        for try await _ in anna.documents.delete([id]) {}
        #expect(try await stages.next()?.status == .deleted)
        #expect(try await stages.next() == nil)
        try await expect(.notFound) {
            for try await _ in people.eve.documents.streamProcessingStatus(id) {}
        }
    }

    // MARK: the feed, and mail

    func feed(_ people: People) async throws {
        let anna = people.anna
        var open = anna.feed.changes(.moods).makeAsyncIterator()
        guard case .ready(let position) = try await open.next() else {
            Issue.record("the stream did not begin with ready")
            return
        }
        let moods = (0..<3).map { _ in NewMood(.calm) }
        for mood in moods { _ = try await anna.moods.log(mood) }
        var seen: [FeedChange] = []
        while seen.count < 3, case .change(let change) = try await open.next() { seen.append(change) }
        #expect(seen.map(\.ref) == moods.map { $0.id.uuidString.lowercased() })
        #expect(seen.allSatisfy { $0.topic == "moods" && $0.change == "logged" && $0.data?["color"] == "calm" })
        #expect(seen.map(\.seq) == seen.map(\.seq).sorted() && (seen.first?.seq ?? 0) > position)

        // Another reader goes on behind the first of them.
        var again: [FeedChange] = []
        for try await event in anna.feed.changes(.moods, .documents, since: seen[0].seq) {
            if case .change(let change) = event { again.append(change) }
            if again.count == 2 { break }
        }
        #expect(again == Array(seen.dropFirst()))

        let page = try await anna.feed.pull(since: seen[0].seq)
        #expect(page.events.filter { $0.topic == "moods" } == Array(seen.dropFirst()) && !page.more && !page.reset)
        #expect(try await anna.feed.pull(since: page.position).events == [])
    }

    func mail(_ people: People) async throws {
        let id = UUID()
        try await expect(.notFound, "id") { _ = try await people.anna.mail.status(of: id) }
    }
}
