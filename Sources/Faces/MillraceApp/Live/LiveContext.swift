import Foundation

/// What the live services share.
struct LiveContext: Sendable {
    let calls: AppCalls
    /// Who is signed in: the subject of the tokens.
    let person: String
    let queue: OfflineQueue?

    /// Something that can wait for the network: by the queue where there is one, else at once.
    /// - Parameters:
    ///   - at: when it happened, for a door that takes it.
    ///   - id: the operation's, where the same thing said again is the same operation.
    func submit<Value: Decodable & Sendable>(
        _ door: String, _ arguments: [String: AppValue], at: Date? = nil, id: UUID = UUID(),
        as type: Value.Type = Value.self
    ) async throws -> Submission<Value> {
        guard let queue else {
            var given = arguments
            if let at { given["at"] = AppValue(at) }
            return .done(try await calls.act(door, given))
        }
        return try await queue.submit(QueuedOperation(door, arguments, at: at ?? calls.pauses.now(), id: id))
    }

    func store(_ file: DocumentFile) async throws -> String { try await calls.store(file) }

    func put(_ file: DocumentFile, to link: URL) async throws { try await calls.put(file, to: link) }

    func events(_ topics: FeedTopic...) -> AsyncThrowingStream<FeedEvent, any Error> {
        FeedReader(calls: calls, path: "v1/me/events", topics: topics.map(\.rawValue)).events(since: nil)
    }
}

/// A row, where a door returns a table of one.
struct OneRow<Row: Decodable>: Decodable {
    let row: Row

    init(from decoder: any Decoder) throws {
        if var rows = try? decoder.unkeyedContainer() {
            row = try rows.decode(Row.self)
        } else {
            row = try Row(from: decoder)
        }
    }
}

struct LiveFeed: FeedClient {
    let calls: AppCalls

    func changes(_ topics: Set<FeedTopic>, since position: Int64?) -> AsyncThrowingStream<FeedEvent, any Error> {
        FeedReader(calls: calls, path: "v1/me/events", topics: topics.map(\.rawValue).sorted()).events(since: position)
    }

    func pull(since position: Int64) async throws -> FeedPage {
        let request = AppCalls.Request(
            name: "sync_pull", url: calls.address("v1/sync", [URLQueryItem(name: "since", value: String(position))]))
        return try AppCalls.decoded(try await calls.send(request))
    }
}
