import Foundation
import TestSupport
import Testing

@testable import MillraceApp

@Suite struct DoubleTests {
    @Test(arguments: Promise.allCases)
    func `the double keeps what the gateway promises`(_ promise: Promise) async throws {
        let gateway = MemoryGateway()
        await gateway.readDocuments(false)
        await gateway.makePictures(false)
        try await promise.check(
            People(
                anna: gateway.client(for: "anna"), ben: gateway.client(for: "ben"), eve: gateway.client(for: "eve"),
                family: "smith",
                shifted: { seconds in
                    gateway.client(for: "anna") { Date(timeIntervalSinceNow: seconds) }
                }, agree: { await gateway.agree($0, of: $1) }))
    }

    @Test func `offline, what can wait is queued, and done once the gateway is back, check-ins first`() async throws {
        let gateway = MemoryGateway()
        let anna = gateway.client(for: "anna")
        await gateway.goOffline()
        let mood = NewMood(.happy)
        #expect(try await anna.moods.log(mood).isQueued)
        #expect(try await anna.emergency.help().isQueued)
        let error = try await failure(as: AppError.self) { _ = try await anna.moods.moods() }
        #expect(error?.kind == .unavailable)
        await gateway.comeBack()
        #expect(try await anna.moods.moods().map(\.id) == [mood.id])
        #expect(try await anna.checkIns.state()?.alarms.count == 1)
    }

    @Test func `what a phone with a wrong clock does offline counts for when it was done`() async throws {
        let gateway = MemoryGateway()
        for shift in Promise.wrongClocks {
            let anna = gateway.client(for: "anna") { Date(timeIntervalSinceNow: shift) }
            await gateway.goOffline()
            let mood = NewMood(.happy, at: Date(timeIntervalSinceNow: shift - 3600))
            #expect(try await anna.moods.log(mood).isQueued)
            await gateway.comeBack()
            let at = try #require(try await anna.moods.moods().first { $0.id == mood.id }?.at)
            #expect(abs(at.timeIntervalSinceNow + 3600) < 300, "\(shift)")
        }
        // Without a word about the clock, what lies ahead counts as now.
        let ben = gateway.client(for: "ben")
        _ = try await ben.moods.log(NewMood(.calm, at: Date(timeIntervalSinceNow: 86_400)))
        #expect(try await ben.moods.moods().first.map { $0.at <= Date() } == true)
    }

    @Test func `a notice that is set again is another one`() async throws {
        let anna = AppClient.mock()
        let soon = OwnNotice("water", key: "k", at: Date(timeIntervalSinceNow: 600))
        var late = soon
        late.at = Date(timeIntervalSinceNow: 1200)
        let first = try await anna.notifications.schedule(soon)
        #expect(try await anna.notifications.schedule(late) == first)
        #expect(try await anna.notifications.cancel("k").value == true)
        let second = try await anna.notifications.schedule(late)
        #expect(second != first && second.value != nil)
        #expect(try await anna.notifications.cancel("k").value == true)
    }

    @Test func `the newest place of a person is what an alarm would show, and it goes with the account`() async throws {
        let gateway = MemoryGateway()
        let anna = gateway.client(for: "anna")
        let now = Date()
        let here = CheckInPlace(latitude: 47.8, longitude: 13.05, at: now)
        _ = try await anna.emergency.help(place: here)
        _ = try await anna.emergency.help(
            place: CheckInPlace(latitude: 1, longitude: 2, at: now.addingTimeInterval(-60)))
        _ = try await anna.emergency.help(place: CheckInPlace(latitude: 91, longitude: 2))
        #expect(await gateway.place(of: "anna") == here)
        #expect(await gateway.place(of: "ben") == nil)
        try await anna.user.deleteAccount()
        #expect(await gateway.place(of: "anna") == nil)
    }

    @Test func `a test says which call fails, and only that one does`() async throws {
        let gateway = MemoryGateway()
        let anna = gateway.client(for: "anna")
        await gateway.failNext(with: AppError(.quota, "full", quota: QuotaError(limit: 1, used: 1, resetDate: nil)))
        let error = try await failure(as: AppError.self) { _ = try await anna.quests.points() }
        #expect(error?.quota?.limit == 1)
        #expect(try await anna.quests.points() == 0)
    }

    @Test func `a document of the double goes through its stages to its text`() async throws {
        let anna = AppClient.mock()
        let text = "Mountain railways\u{0C}Second page"
        let id = try await anna.documents.upload(
            DocumentFile(Data(text.utf8), name: "a.txt", mimeType: "text/plain"), DocumentDetails())
        let document = try await anna.documents.document(id)
        #expect(document.status == .completed && document.pages == 2 && document.pagesDone == 2)
        #expect(try await anna.documents.text(id, pages: 2...2) == "Second page")
        #expect(try await anna.documents.search("railways").map(\.highlight).first?.contains("⟦railways⟧") == true)
    }

    @Test func `a document whose reading a test steers is followed to its failure`() async throws {
        let gateway = MemoryGateway()
        await gateway.readDocuments(false)
        let anna = gateway.client(for: "anna")
        let id = try await anna.documents.upload(
            DocumentFile(Data([1]), name: "a.pdf", mimeType: "application/pdf"), DocumentDetails())
        var stages: [String] = []
        for try await document in anna.documents.streamProcessingStatus(id) {
            if stages.isEmpty { try await gateway.finish(document: id, text: nil) }
            stages.append(document.stage)
        }
        #expect(stages == ["receive", "classify", "ocr", "failed"])
    }

    @Test func `a picture of the double is made at once, and its file can be worked on again`() async throws {
        let anna = AppClient.mock()
        let upload = try await anna.pictures.upload(
            DocumentFile(Data("a heron".utf8), name: "heron.png", mimeType: "image/png"))
        var options = PictureOptions(thumbnail: .init(width: 320), strip: true)
        options.format = .png
        let state = try await anna.pictures.state(try await anna.pictures.process(storageURL: upload, options))
        #expect(state.status == .done && state.files.map(\.kind) == ["thumbnail", "picture"] && state.endedAt != nil)
        let file = try #require(state.file(.picture))
        #expect(file.size == 7 && file.mimeType == "image/png")
        let again = PictureOptions(strip: true)
        #expect(try await anna.pictures.process(storageURL: file.storageUrl, again) == again.id)
        _ = try await anna.pictures.link(again.id, .picture)
        try await anna.user.deleteAccount()
        let error = try await failure(as: AppError.self) { _ = try await anna.pictures.state(again.id) }
        #expect(error?.kind == .notFound)
    }

    @Test func `a picture that a test lets fail is followed to its reason`() async throws {
        let gateway = MemoryGateway()
        await gateway.makePictures(false)
        let anna = gateway.client(for: "anna")
        let upload = try await anna.pictures.upload(DocumentFile(Data([1]), name: "a.png", mimeType: "image/png"))
        let id = try await anna.pictures.process(storageURL: upload, PictureOptions(strip: true))
        var seen: [PictureState] = []
        for try await state in anna.pictures.streamState(id) {
            if seen.isEmpty { try await gateway.finish(picture: id, reason: "malformed") }
            seen.append(state)
        }
        #expect(seen.map(\.status) == [.waiting, .failed] && seen.last?.reason == "malformed")
    }

    @Test func `the double for tests has a still clock and counted ids`() async throws {
        let one = AppClient.test()
        let other = AppClient.test()
        let first = try await one.emergency.help()
        let second = try await other.emergency.help()
        #expect(first == second && first.value != nil)
    }

    @Test func `a preview shows something everywhere`() async throws {
        let client = await AppClient.preview()
        #expect(try await client.moods.moods().count == 7)
        #expect(try await client.moods.streak().current == 7)
        #expect(try await client.hobbies.cards(in: "home").count == 1)
        #expect(try await client.documents.documents().map(\.status) == [.completed])
    }
}
