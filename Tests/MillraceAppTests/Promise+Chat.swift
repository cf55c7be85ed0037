import Foundation
import TestSupport
import Testing

@testable import MillraceApp

extension Promise {
    // MARK: chat

    func chat(_ people: People) async throws {
        let (anna, ben, eve) = (people.anna, people.ben, people.eve)
        try await people.makeFamily()
        let thread = try await anna.chat.begin(NewThread(title: "Home"))
        var changes = ben.chat.newest(in: thread).makeAsyncIterator()
        #expect(try await changes.next() == [])
        let hello = NewMessage("hello", to: thread)
        #expect(try await anna.chat.send(hello).value == hello.id)
        #expect(try await anna.chat.send(hello).value == hello.id)
        var other = hello
        other.text = "hallo"
        try await expect(.alreadyExists, "id") { _ = try await anna.chat.send(other) }
        // That ben is a member now may come as a change of its own.
        var heard = try await changes.next()
        while heard == [] { heard = try await changes.next() }
        #expect(heard?.map(\.text) == ["hello"])
        #expect(try await ben.chat.unreadCount() == 1)
        let second = try #require(try await anna.chat.send("are you there?", to: thread).value)
        #expect(try await ben.chat.messages(in: thread).map(\.n) == [2, 1])
        #expect(try await ben.chat.messages(in: thread, before: 2).map(\.text) == ["hello"])
        #expect(try await ben.chat.messages(in: thread, since: 1).map(\.id) == [second])
        #expect(try await anna.chat.messages(in: thread).map(\.status) == [.delivered, .delivered])
        #expect(try await ben.chat.markRead(thread, upTo: hello.id).value == 1)
        #expect(try await ben.chat.markRead(thread, upTo: second).value == 0)
        #expect(try await ben.chat.markRead(thread, upTo: hello.id).value == 0)
        #expect(try await anna.chat.messages(in: thread).map(\.status) == [.read, .read])

        let shown = try #require(try await ben.chat.threads().first)
        #expect(shown.id == thread && shown.title == "Home" && shown.unread == 0 && shown.lastN == 2)
        #expect(shown.members.map(\.person) == [anna.person, ben.person].sorted())
        #expect(try await ben.chat.search("hello").map(\.highlight) == ["⟦hello⟧"])
        try await expect(.notFound, "id") { _ = try await ben.chat.delete(hello.id) }
        #expect(try await anna.chat.delete(hello.id).value == true)
        #expect(try await anna.chat.delete(hello.id).value == false)
        #expect(try await ben.chat.messages(in: thread).map(\.text) == ["are you there?", nil])
        #expect(try await ben.chat.search("hello") == [])
        try await expect(.invalidInput, "text") { _ = try await ben.chat.send("  ", to: thread) }

        try await expect(.permissionDenied, "members") { _ = try await eve.chat.begin(NewThread(with: [anna.person])) }
        try await expect(.notFound, "thread") { _ = try await eve.chat.messages(in: thread) }
        try await expect(.notFound, "thread") { _ = try await eve.chat.send("let me in", to: thread) }
        #expect(try await eve.chat.threads() == [])
        #expect(try await eve.chat.unreadCount() == 0)
        #expect(try await ben.families.leave(people.family))
        try await expect(.notFound, "thread") { _ = try await ben.chat.messages(in: thread) }
        #expect(try await ben.chat.threads() == [])
    }

    func chatWithContact(_ people: People) async throws {
        let (anna, eve) = (people.anna, people.eve)
        _ = try await anna.emergency.setContact(EmergencyContact(eve.person, push: true))
        try await expect(.permissionDenied, "members") { _ = try await anna.chat.begin(NewThread(with: [eve.person])) }
        #expect(try await eve.emergency.accept(anna.person, agrees: true).value == 1)
        let thread = try await eve.chat.begin(NewThread(with: [anna.person]))
        #expect(try await anna.chat.begin(NewThread(with: [eve.person])) == thread)
        let picture = DocumentFile(Data("a heron".utf8), name: "heron.png", mimeType: "image/png")
        let file = try await anna.chat.upload(picture)
        let message = NewMessage("look", to: thread, files: [file])
        #expect(try await anna.chat.send(message).value == message.id)
        let seen = try #require(try await eve.chat.messages(in: thread).first)
        #expect(seen.attachments == [.init(n: 1, size: 7, mimeType: "image/png", name: "heron.png")])
        _ = try await eve.chat.link(message.id, file: 1)
        try await expect(.notFound, "id") { _ = try await people.ben.chat.link(message.id, file: 1) }
        _ = try await eve.emergency.accept(anna.person, agrees: false)
        try await expect(.notFound, "thread") { _ = try await eve.chat.messages(in: thread) }
        try await expect(.notFound, "thread") { _ = try await anna.chat.send("still there?", to: thread) }
    }

    // MARK: lessons

    func lessons(_ people: People) async throws {
        let (anna, ben) = (people.anna, people.ben)
        let name = "algebra-\(people.family)"
        #expect(try await anna.lessons.put(name, title: "Algebra").value == .created)
        #expect(try await anna.lessons.put(name, title: "Algebra").value == .unchanged)
        #expect(try await anna.lessons.put(name, title: "Algebra, week 7").value == .updated)
        let lesson = try await anna.lessons.lesson(name)
        #expect(lesson.title == "Algebra, week 7" && lesson.documents == 0)
        #expect(try await anna.lessons.lessons().map(\.id).contains(name))
        try await expect(.notFound, "id") { _ = try await ben.lessons.lesson(name) }
        var done: [Int] = []
        for try await progress in ben.lessons.delete([name]) { done.append(progress.done) }
        #expect(try await anna.lessons.lesson(name) == lesson)
        for try await progress in anna.lessons.delete([name] + (1...10).map { "none-\($0)" }) {
            done.append(progress.done)
        }
        #expect(done == [1, 10, 11])
        try await expect(.notFound, "id") { _ = try await anna.lessons.lesson(name) }
        let told = try await anna.feed.pull(since: 0).events.compactMap { LessonUpdate($0) }
        #expect(told.map(\.change) == [.created, .updated, .deleted] && told.allSatisfy { $0.lesson == name })
        try await lessonUpdates(anna)
    }

    /// A stream brings what happens after it has begun: so something happens until it brings it.
    private func lessonUpdates(_ anna: AppClient) async throws {
        let seen = Locked<[LessonUpdate]>([])
        let reader = Task {
            for try await update in anna.lessons.streamLessonUpdates() { seen.withLock { $0.append(update) } }
        }
        var turn = 0
        try await eventually("an update of a lesson comes") {
            turn += 1
            _ = try await anna.lessons.put("more", title: "\(turn)")
            return seen.value.contains(LessonUpdate(lesson: "more", change: .updated))
        }
        reader.cancel()
    }
}
