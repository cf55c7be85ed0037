import Foundation
import TestSupport
import Testing

@testable import MillraceApp

extension Promise {
    /// Nothing is made here: no worker runs.
    func pictures(_ people: People) async throws {
        let (anna, eve) = (people.anna, people.eve)
        let upload = try await anna.pictures.upload(
            DocumentFile(Data("a heron".utf8), name: "heron.png", mimeType: "image/png"))
        var options = PictureOptions(thumbnail: .init(width: 320, height: 320), strip: true)
        #expect(try await anna.pictures.process(storageURL: upload, options) == options.id)
        #expect(try await anna.pictures.process(storageURL: upload, options) == options.id)
        options.format = .png
        try await expect(.alreadyExists, "id") { _ = try await anna.pictures.process(storageURL: upload, options) }

        let state = try await anna.pictures.state(options.id)
        #expect(state.id == options.id && state.status == .waiting && !state.hasEnded && state.reason == nil)
        #expect(state.files == [] && state.createdAt != nil && state.endedAt == nil)
        try await expect(.notFound, "id") { _ = try await eve.pictures.state(options.id) }
        try await expect(.alreadyExists, "kind") { _ = try await anna.pictures.link(options.id, .thumbnail) }
        try await expect(.notFound, "id") { _ = try await eve.pictures.link(options.id, .thumbnail) }

        for (wish, field) in [
            (PictureOptions(), "options"), (PictureOptions(thumbnail: .init()), "options.thumbnail"),
            (PictureOptions(thumbnail: .init(width: 4097)), "options.thumbnail"),
        ] {
            try await expect(.invalidInput, field) { _ = try await anna.pictures.process(storageURL: upload, wish) }
        }
        try await expect(.invalidInput, "storage_url") {
            _ = try await anna.pictures.process(storageURL: "https://a.example/a.png", PictureOptions(strip: true))
        }
        try await expect(.notFound, "storage_url") {
            _ = try await anna.pictures.process(
                storageURL: "upload:\(UUID().uuidString.lowercased())", PictureOptions(strip: true))
        }

        var states = anna.pictures.streamState(options.id).makeAsyncIterator()
        #expect(try await states.next() == state)
        try await expect(.notFound, "id") { try await eve.pictures.delete(options.id) }
        try await anna.pictures.delete(options.id)
        try await expect(.notFound) { _ = try await states.next() }
        try await expect(.notFound, "id") { try await anna.pictures.delete(options.id) }
        let told = try await anna.feed.pull(since: 0).events.filter { $0.topic == FeedTopic.media.rawValue }
        #expect(told.map(\.change) == ["deleted"] && told[0].ref == options.id.uuidString.lowercased())
    }
}
