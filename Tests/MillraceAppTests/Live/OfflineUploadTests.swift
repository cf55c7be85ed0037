import Fakes
import Foundation
import Postgres
import TestSupport
import Testing

@testable import MillraceApp

/// Files, lessons and contacts that were changed without a network.
@Suite struct OfflineUploadTests {
    private let file = DocumentFile(Data("%PDF-1.4 of a test".utf8), name: "a.pdf", mimeType: "application/pdf")

    @Test func `a file waits on the disk through a new start of the app, and is registered once`() async throws {
        try await AppWorld.with { world in
            try await world.withQueue("anna") { anna, queue, directory in
                var details = DocumentDetails(
                    title: "Railways", lessonID: "geography", reading: ReadingOptions(mode: .force))
                details.password = "open sesame"
                #expect(try await anna.documents.submit(file, details).isQueued)
                #expect(try await anna.checkIns.checkIn().isQueued)
                #expect(await queue.pending.map(\.op) == ["check_in", "upload"])
                let kept = directory.appending(path: "uploads")
                #expect(try FileManager.default.contentsOfDirectory(atPath: kept.path).count == 1)
                await queue.close()
                // What a crash left of a file is removed, and what waits stays.
                try Data("half".utf8).write(to: kept.appending(path: "other.new"))
                let again = try await OfflineQueue(directory: directory, person: "anna", calls: world.calls("anna"))
                #expect(try FileManager.default.contentsOfDirectory(atPath: kept.path).count == 1)
                let id = details.id
                try await world.serving {
                    #expect(try await again.drain() == OfflineQueue.Report(ended: 2, waiting: 0))
                    let document = try await world.client("anna").documents.document(id)
                    #expect(document.title == "Railways" && document.lessonId == "geography")
                    #expect(document.size == 18)
                }
                #expect(try FileManager.default.contentsOfDirectory(atPath: kept.path) == [])
                let mode = try await world.owner.value("select choices ->> 'mode' from millrace.document")
                #expect(mode == "force")
                await again.close()
            }
        }
    }

    /// 1. The file is uploaded and registered. 2. The app is killed before that is on the disk. 3. It starts again.
    @Test func `a registration whose answer was lost is found, and the file is not uploaded again`() async throws {
        try await AppWorld.with { world in
            let reports = Locked<[String]>([])
            let calls = world.calls("anna", observer: { report in reports.withLock { $0.append(report.name) } })
            try await world.withQueue("anna", calls) { anna, queue, _ in
                let details = DocumentDetails(title: "Railways")
                #expect(try await anna.documents.submit(file, details).isQueued)
                try await world.serving {
                    _ = try await world.client("anna").documents.upload(file, details)
                    reports.withLock { $0 = [] }
                    #expect(try await queue.drain().waiting == 0)
                    #expect(reports.value == ["document"])
                    #expect(try await anna.documents.documents().map(\.id) == [details.id])
                    // With a network it is there at once.
                    let next = DocumentDetails(title: "Tunnels")
                    #expect(try await anna.documents.submit(file, next).value == next.id)
                }
            }
        }
    }

    /// 1. Three pieces of a file come, and the app is killed. 2. It starts again. 3. It sends the other seven.
    @Test func `a large file goes on behind what has come when the app was killed`() async throws {
        try await AppWorld.with { world in
            let reports = Locked<[String]>([])
            let calls = world.calls("anna", piece: 100_000) { report in reports.withLock { $0.append(report.name) } }
            try await world.withQueue("anna", calls) { anna, queue, directory in
                let content = Data((0..<950_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
                let file = DocumentFile(content, name: "scan.pdf", mimeType: "application/pdf")
                let details = DocumentDetails(title: "Railways")
                #expect(try await anna.documents.submit(file, details).isQueued)
                try await world.serving {
                    let link = try await calls.link(for: file)
                    try await queue.files.keep(link, of: details.id)
                    for n in 0..<3 {
                        _ = try await calls.append(
                            file.piece(at: n * 100_000, most: 100_000), at: n * 100_000, to: link.url)
                    }
                }
                await queue.close()
                reports.withLock { $0 = [] }
                let again = try await OfflineQueue(directory: directory, person: "anna", calls: calls)
                #expect(try await world.drain(again) == OfflineQueue.Report(ended: 1, waiting: 0))
                #expect(
                    reports.value == ["document", "upload_state"] + Array(repeating: "upload", count: 7)
                        + ["document_register"])
                #expect(try await world.owner.int("select size from millrace.document") == 950_000)
                let kept = directory.appending(path: "uploads").path
                #expect(try FileManager.default.contentsOfDirectory(atPath: kept) == [])
                await again.close()
            }
        }
    }

    @Test func `a link that is over is replaced, and a piece whose answer was lost is not sent twice`() async throws {
        try await AppWorld.with { world in
            let calls = world.calls("anna", piece: 1000)
            try await world.withQueue("anna", calls) { anna, queue, _ in
                let file = DocumentFile(Data(repeating: 7, count: 2500), name: "scan.pdf", mimeType: "application/pdf")
                let details = DocumentDetails(title: "Railways")
                #expect(try await anna.documents.submit(file, details).isQueued)
                try await world.serving {
                    let link = try await calls.link(for: file)
                    // Its signature does not fit any more.
                    let over = AppCalls.UploadLink(
                        url: try #require(URL(string: link.url.absoluteString + "0")), storageUrl: link.storageUrl)
                    try await queue.files.keep(over, of: details.id)
                    #expect(try await queue.drain() == OfflineQueue.Report(ended: 1, waiting: 0))
                    #expect(try await anna.documents.documents().map(\.size) == [2500])

                    let other = try await calls.link(for: file)
                    _ = try await calls.append(file.piece(at: 0, most: 1000), at: 0, to: other.url)
                    let refused = try await failure(as: AppError.self) {
                        _ = try await calls.append(file.piece(at: 0, most: 1000), at: 0, to: other.url)
                    }
                    #expect(refused?.errorClass == .conflict)
                    try await calls.put(file, to: other.url)
                    #expect(
                        try await world.owner.int(
                            "select count(*) from millrace.upload u where used_at is not null and not exists (select from millrace.upload_part p where p.upload = u.id)"
                        ) == 2)
                }
            }
        }
    }

    /// A request of the app before it was killed may arrive after those of the app that has started again.
    @Test(arguments: [3, 50]) func `a piece is sent again when a late request has taken the link, some times`(
        refusals: Int
    ) async throws {
        let (asked, came) = (Locked<[String]>([]), Locked(0))
        let server = try RawServer { connection in
            while let head = connection.readHead() {
                let state = #"{"offset": \#(came.value), "complete": \#(came.value == 2000)}"#
                asked.withLock { $0.append(String(head.prefix { $0 != " " })) }
                guard head.hasPrefix("PATCH") else {
                    connection.answer(state, headers: "Content-Type: application/json\r\n")
                    continue
                }
                _ = connection.read(exactly: 1000)
                if asked.value.count(where: { $0 == "PATCH" }) <= refusals {
                    connection.answer(
                        #"{"error": "conflict", "message": "an upload through this link is under way"}"#,
                        status: "409 Conflict", headers: "Content-Type: application/json\r\n")
                } else {
                    came.withLock { $0 += 1000 }
                    let end = came.value == 2000 ? "?1" : "?0"
                    connection.write(
                        "HTTP/1.1 204 No Content\r\nUpload-Offset: \(came.value)\r\nUpload-Complete: \(end)\r\n\r\n")
                }
            }
        }
        defer { server.stop() }
        var configuration = AppConfiguration(url: try #require(URL(string: "http://127.0.0.1:\(server.port)"))) { _ in
            "token"
        }
        configuration.uploadPiece = 1000
        let calls = AppCalls(configuration, pauses: Pauses(sleep: { _ in }))
        let file = DocumentFile(Data(repeating: 7, count: 2000), name: "scan.pdf", mimeType: "application/pdf")
        let refused = try await failure(as: AppError.self) {
            try await calls.put(file, to: configuration.url.appending(path: "v1/uploads/link"))
        }
        #expect(refused?.errorClass == (refusals > 5 ? .conflict : nil))
        #expect(asked.value.count(where: { $0 == "PATCH" }) == 5)
    }

    @Test func `a document that is handed in twice waits once, and what waits is not replaced`() async throws {
        let away = try #require(URL(string: "http://127.0.0.1:\(try freePort())"))
        let directory = FileManager.default.temporaryDirectory.appending(path: "queue-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        var configuration = AppConfiguration(url: away) { _ in "token" }
        configuration.retry = .none
        let queue = try await OfflineQueue(directory: directory, person: "anna", calls: AppCalls(configuration))
        let anna = AppClient.live(AppCalls(configuration), "anna", queue)
        let details = DocumentDetails(title: "Railways")
        #expect(try await anna.documents.submit(file, details).isQueued)
        #expect(try await anna.documents.submit(file, details).isQueued)
        var other = details
        other.title = "Tunnels"
        let longer = DocumentFile(Data("%PDF-1.4 of another".utf8), name: "a.pdf", mimeType: "application/pdf")
        let refused = try await failure(as: AppError.self) { _ = try await anna.documents.submit(longer, other) }
        #expect(refused?.errorClass == .conflict && refused?.field == "id")
        #expect(await queue.pending.count == 1)
        let kept = directory.appending(path: "uploads").appending(path: details.id.uuidString.lowercased())
        #expect(try Data(contentsOf: kept).count == 18)
        await queue.close()
    }

    @Test func `a file that the gateway refuses has ended, and the next ones are uploaded`() async throws {
        try await AppWorld.with { world in
            try await world.withQueue("anna") { anna, queue, _ in
                var outcomes = await queue.outcomes().makeAsyncIterator()
                let empty = DocumentFile(Data(), name: "empty.pdf", mimeType: "application/pdf")
                let (bad, good) = (DocumentDetails(), DocumentDetails())
                #expect(try await anna.documents.submit(empty, bad).isQueued)
                #expect(try await anna.documents.submit(file, good).isQueued)
                let report = try await world.drain(queue)
                #expect(report == OfflineQueue.Report(ended: 2, waiting: 0))
                let known = try await world.serving { try await anna.documents.documents() }
                #expect(known.map(\.id) == [good.id])
                let refused = await outcomes.next()
                #expect(refused?.operation.id == bad.id && refused?.word == .refused && refused?.error != nil)
                #expect(await outcomes.next()?.word == .applied)
            }
        }
    }

    @Test func `lessons and contacts are changed offline, in whatever order two phones tell it`() async throws {
        try await AppWorld.with { world in
            try await world.withQueue("anna") { anna, queue, _ in
                try await world.withQueue("anna") { other, second, _ in
                    #expect(try await anna.lessons.put("algebra", title: "Old", data: ["room": 1]).isQueued)
                    #expect(try await other.lessons.put("algebra", title: "New").isQueued)
                    #expect(try await anna.lessons.put("gone", title: "Gone").isQueued)
                    #expect(try await anna.lessons.delete("gone").isQueued)
                    let mum = EmergencyContact("mum", mail: "mum@example.org")
                    #expect(try await anna.emergency.setContact(mum).isQueued)
                    #expect(try await anna.contacts.describe("mum", name: "Mother", shares: .state).isQueued)
                    #expect(try await anna.emergency.setContact(EmergencyContact("ex", sms: "+4366412345")).isQueued)
                    #expect(try await anna.emergency.removeContact("ex").isQueued)
                    try await world.serving {
                        // The newer title arrives first.
                        #expect(try await second.drain().waiting == 0)
                        #expect(try await queue.drain().waiting == 0)
                        let lesson = try await anna.lessons.lesson("algebra")
                        #expect(lesson.title == "New" && lesson.data == ["room": 1])
                        #expect(try await anna.lessons.lessons().map(\.id) == ["algebra"])
                        let contacts = try await anna.contacts.list()
                        #expect(contacts.map(\.contact) == ["mum"] && contacts.first?.name == "Mother")
                    }
                }
            }
        }
    }
}
