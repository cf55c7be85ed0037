import Foundation
import GRDB
import MillraceApp
import Testing

@testable import DocumentCache

@Suite struct DocumentCacheTests {
    private let file = DocumentFile(Data("%PDF-1.4".utf8), name: "a.pdf", mimeType: "application/pdf")

    /// Titles, as a screen shows them.
    private func shown(_ cache: DocumentCache) async throws -> [String] {
        try await cache.database.read { db in try CachedDocument.order(Column("title")).fetchAll(db) }.compactMap(
            \.title)
    }

    private func until(_ what: String, _ holds: () async throws -> Bool) async throws {
        for _ in 0..<500 {
            if try await holds() { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        Issue.record("it does not come: \(what)")
    }

    private func upload(_ title: String, _ app: AppClient) async throws -> UUID {
        try await app.documents.upload(file, DocumentDetails(title: title))
    }

    @Test func `what was there, what comes and what goes is shown, also without a network`() async throws {
        let gateway = MemoryGateway()
        let app = gateway.client(for: "anna")
        let first = try await upload("Alps", app)
        let cache = try DocumentCache(DatabaseQueue())
        let following = Task { try await cache.follow(app) }
        try await until("what was there") { try await shown(cache) == ["Alps"] }
        _ = try await upload("Bridges", app)
        _ = try await upload("Canals", gateway.client(for: "ben"))
        try await until("what comes") { try await shown(cache) == ["Alps", "Bridges"] }
        _ = try await app.documents.delete(first)
        try await until("what goes") { try await shown(cache) == ["Bridges"] }
        following.cancel()
        await gateway.goOffline()
        await #expect(throws: AppError.self) { _ = try await app.documents.documents() }
        #expect(try await shown(cache) == ["Bridges"])
    }

    @Test func `an app that starts again goes on behind what its cache has`() async throws {
        let place = FileManager.default.temporaryDirectory.appending(path: "cache-\(UUID().uuidString).sqlite").path
        defer { try? FileManager.default.removeItem(atPath: place) }
        let gateway = MemoryGateway()
        let app = gateway.client(for: "anna")
        do {
            let cache = try DocumentCache(DatabasePool(path: place))
            let following = Task { try await cache.follow(app) }
            _ = try await upload("Alps", app)
            try await until("the first") { try await shown(cache) == ["Alps"] }
            following.cancel()
            _ = await following.result
        }
        _ = try await upload("Bridges", app)
        let cache = try DocumentCache(DatabasePool(path: place))
        #expect(try await shown(cache) == ["Alps"])
        await gateway.forgetCalls()
        let following = Task { try await cache.follow(app) }
        try await until("what came meanwhile") { try await shown(cache) == ["Alps", "Bridges"] }
        #expect(await gateway.calls(of: "document_list") == 0, "the whole list is not read again")
        following.cancel()
    }

    /// A feed that gives what a test says.
    private final class Script: FeedClient, Sendable {
        let events: [FeedEvent]
        init(_ events: [FeedEvent]) { self.events = events }

        func changes(_ topics: Set<FeedTopic>, since position: Int64?) -> AsyncThrowingStream<FeedEvent, any Error> {
            AsyncThrowingStream { consumer in
                for event in events { consumer.yield(event) }
                consumer.finish()
            }
        }

        func pull(since position: Int64) async throws -> FeedPage { FeedPage(events: [], position: position) }
    }

    @Test func `after a gap everything is read again, a change that comes twice does no harm, and the place is kept`()
        async throws
    {
        var app = MemoryGateway().client(for: "anna")
        let kept = try await upload("Alps", app)
        let gone = try await upload("Bridges", app)
        let cache = try DocumentCache(DatabaseQueue())
        app.feed = Script([.ready(position: 4)])
        try await cache.follow(app)
        #expect(try await shown(cache) == ["Alps", "Bridges"])
        #expect(try await cache.position() == 4)
        _ = try await app.documents.delete(gone)
        _ = try await upload("Canals", app)
        app.feed = Script([.ready(position: 9), .reset(position: 9)])
        try await cache.follow(app)
        #expect(try await shown(cache) == ["Alps", "Canals"])
        let change = FeedChange(seq: 12, at: Date(), topic: "documents", ref: kept.uuidString, change: "updated")
        app.feed = Script([.ready(position: 9), .change(change), .change(change)])
        try await cache.follow(app)
        #expect(try await shown(cache) == ["Alps", "Canals"])
        #expect(try await cache.position() == 12)
    }

    @Test func `a screen that observes the cache is told of each change`() async throws {
        let app = MemoryGateway().client(for: "anna")
        let cache = try DocumentCache(DatabaseQueue())
        let following = Task { try await cache.follow(app) }
        let counts = Task {
            var last = 0
            for try await documents in cache.documents() {
                last = documents.count
                if last == 2 { break }
            }
            return last
        }
        _ = try await upload("Alps", app)
        _ = try await upload("Bridges", app)
        #expect(try await counts.value == 2)
        following.cancel()
    }
}
