import Foundation
import TestSupport
import Testing

@testable import MillraceApp

/// What a test can make of the double: failures, slowness, a missing network, counts and answers of its own.
@Suite struct DoubleTroubleTests {
    private let away = AppError(.unavailable, "a test")

    @Test func `calls fail as often as told, of one function or of any`() async throws {
        let gateway = MemoryGateway()
        let anna = gateway.client(for: "anna")
        await gateway.failNext(2, with: away)
        await gateway.failNext(with: AppError(.permission, "a test"), of: "moods")
        for _ in 0..<2 {
            #expect(try await failure(as: AppError.self) { _ = try await anna.quests.points() } == away)
        }
        #expect(try await anna.quests.points() == 0)
        let refused = try await failure(as: AppError.self) { _ = try await anna.moods.moods() }
        #expect(refused?.kind == .permissionDenied)
        #expect(try await anna.moods.moods() == [])
    }

    @Test func `calls fail for good until the test says otherwise`() async throws {
        let gateway = MemoryGateway()
        let anna = gateway.client(for: "anna")
        await gateway.failAlways(with: away, of: "mood_log")
        for _ in 0..<5 {
            #expect(try await failure(as: AppError.self) { _ = try await anna.moods.log(.calm) } == away)
        }
        #expect(try await anna.quests.points() == 0)
        await gateway.failAlways(with: AppError(.timeout, "a test"))
        let late = try await failure(as: AppError.self) { _ = try await anna.profile.mine() }
        #expect(late?.kind == .deadlineExceeded)
        await gateway.recover()
        #expect(try await anna.moods.log(.calm).value != nil)
        #expect(try await anna.moods.moods().count == 1)
    }

    @Test func `calls are as slow as told`() async throws {
        let gateway = MemoryGateway()
        let slept = Locked<[Duration]>([])
        await gateway.beSlow(by: .seconds(30)) { pause in slept.withLock { $0.append(pause) } }
        let anna = gateway.client(for: "anna")
        _ = try await anna.moods.log(.calm)
        _ = try await anna.profile.mine()
        #expect(slept.value == [.seconds(30), .seconds(30)])
        // One that is cancelled meanwhile has done nothing.
        await gateway.beSlow(by: .seconds(3600))
        let waiting = Task { try await anna.moods.log(.happy) }
        waiting.cancel()
        _ = try await failure(as: CancellationError.self) { _ = try await waiting.value }
        await gateway.recover()
        #expect(try await anna.moods.moods().map(\.color) == [.calm])
    }

    @Test func `calls are counted by the functions that a gateway would have heard`() async throws {
        let gateway = MemoryGateway()
        let anna = gateway.client(for: "anna")
        _ = try await anna.moods.log(.calm)
        _ = try await anna.moods.log(.happy)
        await gateway.failNext(with: away)
        _ = try await failure(as: AppError.self) { _ = try await anna.quests.points() }
        await gateway.goOffline()
        #expect(try await anna.checkIns.checkIn().isQueued)
        #expect(try await anna.contacts.describe("ben", name: "Benny").isQueued)
        #expect(await gateway.calls(of: "mood_log") == 2)
        #expect(await gateway.calls(of: "points") == 1)
        #expect(await gateway.calls(of: "check_in") == 1)
        #expect(await gateway.calls(of: "streak") == 0)
        #expect(await gateway.calls() == 5)
        #expect(
            await gateway.calledDoors == ["check_in", "check_in_contact_details", "mood_log", "points"])
        await gateway.forgetCalls()
        #expect(await gateway.calls() == 0)
    }

    @Test func `the double answers what the test says, and says so where it knows nothing`() async throws {
        let gateway = MemoryGateway()
        let anna = gateway.client(for: "anna")
        let unknown = try await failure(as: AppError.self) { _ = try await anna.jobs.cancel(7) }
        #expect(unknown?.errorClass == .unsupported && unknown?.hint?.contains("cancel") == true)
        await gateway.answer("cancel") { _, arguments in .bool(arguments["id"] == 7) }
        #expect(try await anna.jobs.cancel(7))
        #expect(try await !anna.jobs.cancel(8))
        await gateway.setFlag("new-cards", true)
        #expect(try await anna.flags.isOn("new-cards"))
        struct Sum: Decodable, Sendable, Equatable { let sum: Int }
        await gateway.answer("add_up") { person, arguments in
            ["sum": .int(Int64((arguments["a"]?.int ?? 0) + (arguments["b"]?.int ?? 0))), "by": .string(person)]
        }
        #expect(try await anna.call("add_up", arguments: ["a": 2, "b": 3], as: Sum.self) == Sum(sum: 5))
        let wrong = try await failure(as: AppError.self) {
            _ = try await anna.call("add_up", arguments: [:], as: [Int].self)
        }
        #expect(wrong?.kind == .unknown && wrong?.message.contains("add_up") == true)
    }

    @Test func `a topic is followed with the app's own type`() async throws {
        let gateway = MemoryGateway()
        let anna = gateway.client(for: "anna")
        struct Told: Decodable, Sendable, Equatable { let contact: String? }
        var events = anna.events(of: .checkIns, as: Told.self) {
            _ = try await anna.emergency.setContact(EmergencyContact("mum", mail: "mum@example.org"))
        }.makeAsyncIterator()
        let event = try #require(try await events.next())
        #expect(event.change == "contact" && event.ref == "anna" && event.detail == Told(contact: "mum"))
    }

    @Test func `a card has the question that a model made of its fact`() async throws {
        let gateway = MemoryGateway()
        let (anna, ben) = (gateway.client(for: "anna"), gateway.client(for: "ben"))
        _ = try await anna.families.create("smith", zone: "UTC")
        _ = try await anna.families.invite("ben", to: "smith", as: .teen)
        _ = try await ben.families.join("smith", as: .teen)
        _ = try await anna.hobbies.save("Chess", fact: "Nine hours once")
        let card = try #require(try await ben.hobbies.cards(in: "smith").first)
        #expect(card.question == nil)
        await gateway.put(question: "Who sits for nine hours?", onCard: card.id)
        #expect(try await ben.hobbies.cards(in: "smith").first?.question == "Who sits for nine hours?")
    }

    @Test func `a file that is kept offline is a document when the gateway is back`() async throws {
        let gateway = MemoryGateway()
        let anna = gateway.client(for: "anna")
        await gateway.goOffline()
        let details = DocumentDetails(title: "Railways")
        let file = DocumentFile(Data("Mountain railways".utf8), name: "a.txt", mimeType: "text/plain")
        #expect(try await anna.documents.submit(file, details).isQueued)
        #expect(try await anna.lessons.put("geography", title: "Geography").isQueued)
        await gateway.comeBack()
        #expect(try await anna.documents.text(details.id) == "Mountain railways")
        #expect(try await anna.lessons.lesson("geography").title == "Geography")
    }
}
