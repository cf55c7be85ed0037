import Foundation
import Postgres
import TestSupport
import Testing

@testable import MillraceApp

/// What an extension hands to the queue, which another process has open.
@Suite struct OfflineInboxTests {
    private let file = DocumentFile(Data("%PDF-1.4 of a test".utf8), name: "a.pdf", mimeType: "application/pdf")

    private func mood(_ number: Int) -> QueuedOperation {
        QueuedOperation(
            "mood_log",
            ["person": "anna", "id": AppValue(UUID()), "color": .string(MoodColor.allCases[number].rawValue)],
            at: Date(timeIntervalSinceNow: Double(number) - 60))
    }

    @Test func `what was handed in is told once, in order, with its file, and nothing of it stays`() async throws {
        try await AppWorld.with { world in
            try await world.withQueue("anna") { anna, queue, directory in
                let inbox = try await OfflineInbox(directory: directory, person: "anna")
                let details = DocumentDetails(title: "Railways")
                for number in [2, 0, 1] { try await inbox.add(mood(number)) }
                #expect(try await inbox.add(file, details) == details.id)
                try await inbox.add(file, details, at: .distantPast)
                #expect(await queue.pending == [], "it is taken in by a drain")
                var outcomes = await queue.outcomes().makeAsyncIterator()
                try await world.serving {
                    let report = try await queue.drain()
                    #expect(report == OfflineQueue.Report(ended: 4, waiting: 0))
                    #expect(try await anna.documents.document(details.id).title == "Railways")
                }
                for expected in MoodColor.allCases.prefix(3).map(\.rawValue) + [nil] {
                    let outcome = await outcomes.next()
                    #expect(outcome?.word == .applied && outcome?.operation.args["color"]?.string == expected)
                }
                #expect(try await world.owner.int("select count(*) from millrace.mood where person = 'anna'") == 3)
                for folder in ["inbox", "uploads"] {
                    let path = directory.appending(path: folder).path
                    #expect(try FileManager.default.contentsOfDirectory(atPath: path) == [])
                }
            }
        }
    }

    @Test func `what comes while the queue runs is told without a call, and watchers see how far it is`() async throws {
        try await AppWorld.with { world in
            try await world.withQueue("anna") { _, queue, directory in
                let inbox = try await OfflineInbox(directory: directory, person: "anna")
                let seen = Locked<[SyncStatus]>([])
                let watching = Task {
                    for await status in await queue.statuses() { seen.withLock { $0.append(status) } }
                }
                try await eventually("a watcher is told how it stands") { seen.value == [SyncStatus()] }
                try await queue.add(mood(1))
                await #expect(throws: AppError.self) { try await queue.drain() }
                try await eventually("it waits, and why") {
                    seen.value.last.map { $0.waiting == 1 && !$0.isTelling && $0.trouble != nil } == true
                }
                try await world.serving {
                    let running = Task { try await queue.run() }
                    try await eventually("it was told") {
                        seen.value.last?.waiting == 0 && seen.value.last?.lastTold != nil
                    }
                    #expect(seen.value.last?.trouble == nil)
                    try await inbox.add(mood(2))
                    try await eventually("it was found", within: .seconds(60)) {
                        try await world.owner.int("select count(*) from millrace.mood where person = 'anna'") == 2
                    }
                    running.cancel()
                    _ = await running.result
                }
                #expect(seen.value.contains { $0.isTelling })
                await queue.close()
                await watching.value  // ends with the queue
            }
        }
    }

    @Test func `a view's status follows the queue`() async throws {
        try await AppWorld.with { world in
            try await world.withQueue("anna") { _, queue, _ in
                let state = await SyncState()
                let following = Task { await state.follow(queue) }
                try await queue.add(mood(1))
                try await queue.add(QueuedOperation("check_in", ["person": "anna"]))
                try await eventually("it is told") { await state.status == SyncStatus(waiting: 2, urgent: 1) }
                following.cancel()
                await following.value
            }
        }
    }

    /// Extensions are killed at any time, while the app has the queue open and drains.
    @Test func `what killed extensions had said is told once each`() async throws {
        try await AppWorld.with { world in
            try await world.withQueue("anna") { anna, queue, directory in
                let picture = directory.appending(path: "picture.png")
                try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
                try Data("\u{89}PNG of a test".utf8).write(to: picture)
                try await world.serving {
                    var said: Set<String> = []
                    for lines in [1, 3, 2] {
                        said.formUnion(
                            try await CrashTests.killed(
                                ["share"] + Array(repeating: picture.path, count: 50), after: lines, in: directory))
                        try await queue.drain()
                    }
                    try await queue.drain()
                    let there = Set(try await anna.documents.documents().map(\.id.uuidString))
                    #expect(said.count >= 6 && there.isSuperset(of: said))
                    // At each kill, one more may be on the disk that it had no time to say.
                    #expect(there.count <= said.count + 3)
                }
                #expect(await queue.pending == [])
            }
        }
    }

    @Test func `wherever a crash stops a hand-in or what takes it in, it is there once`() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "inbox-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let calls = AppCalls(AppConfiguration(url: try #require(URL(string: "http://127.0.0.1:9"))) { _ in "none" })
        func opened() async throws -> OfflineQueue {
            try await OfflineQueue(directory: directory, person: "anna", calls: calls)
        }
        let inbox = try await OfflineInbox(directory: directory, person: "anna")
        let place = directory.appending(path: "inbox")
        let details = DocumentDetails(title: "Railways")
        try await inbox.add(file, details)
        let entry = place.appending(path: details.id.uuidString.lowercased())
        let copy = directory.appending(path: "copy")
        try FileManager.default.copyItem(at: entry, to: copy)

        // The file has moved, and its operation has not.
        let kept = directory.appending(path: "uploads")
        try FileManager.default.createDirectory(at: kept, withIntermediateDirectories: true)
        let upload = kept.appending(path: details.id.uuidString.lowercased())
        try FileManager.default.moveItem(at: entry.appending(path: "file"), to: upload)
        var queue = try await opened()
        #expect(await queue.pending.map(\.id) == [details.id])
        #expect(FileManager.default.fileExists(atPath: upload.path))
        await queue.close()

        // It was taken in, and not removed; beside it what killed extensions have left.
        try FileManager.default.moveItem(at: copy, to: entry)
        try FileManager.default.createDirectory(at: place.appending(path: "x.new"), withIntermediateDirectories: true)
        try FileManager.default.createDirectory(at: place.appending(path: "y.new"), withIntermediateDirectories: true)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -7200)], ofItemAtPath: place.appending(path: "y.new").path)
        try FileManager.default.createDirectory(at: place.appending(path: "z.done"), withIntermediateDirectories: true)
        try FileManager.default.createDirectory(at: place.appending(path: "hurt"), withIntermediateDirectories: true)
        queue = try await opened()
        #expect(await queue.pending.map(\.id) == [details.id])
        #expect(try Data(contentsOf: upload) == Data("%PDF-1.4 of a test".utf8))
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path).sorted() == ["hurt.damaged", "x.new"])
        await queue.close()
    }

    @Test func `another person's directory, another operation with the same id, and too much are refused`() async throws
    {
        try await AppWorld.with { world in
            try await world.withQueue("anna") { _, queue, directory in
                await #expect(throws: AppError.self) { _ = try await OfflineInbox(directory: directory, person: "ben") }
                let inbox = try await OfflineInbox(directory: directory, person: "anna")
                let one = mood(1)
                try await inbox.add(one)
                let other = QueuedOperation("mood_log", ["color": "happy"], at: one.at, id: one.id)
                await #expect(throws: AppError.self) { try await inbox.add(other) }
                await #expect(throws: AppError.self) {
                    try await inbox.add(
                        QueuedOperation("mood_log", ["note": .string(String(repeating: "x", count: 70_000))]))
                }
                await #expect(throws: AppError.self) { try await inbox.add(QueuedOperation("upload", [:])) }
                // With the queue it is another matter: what lies there first has the id.
                try await queue.add(other)
                var outcomes = await queue.outcomes().makeAsyncIterator()
                await #expect(throws: AppError.self) { try await queue.drain() }
                #expect(await outcomes.next()?.word == .conflict)
                #expect(await queue.pending == [other])
            }
        }
    }
}
