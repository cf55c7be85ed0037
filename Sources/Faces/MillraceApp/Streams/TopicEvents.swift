/// A change of one topic, with what is known of it as a type of the app's.
public struct TopicEvent<Detail: Sendable & Decodable>: Sendable {
    /// The position of this change.
    public let seq: Int64
    /// What has changed.
    public let ref: String
    /// How, such as `created`.
    public let change: String
    /// What is known of it; nil: nothing, or in a form that `Detail` is not.
    public let detail: Detail?
}

extension TopicEvent: Equatable where Detail: Equatable {}

extension AppClient {
    /// What changes in one topic. A state that is to be shown is read when the stream says `ready` or `reset`: that is what `opened` is called for.
    public func events<Detail: Sendable & Decodable>(
        of topic: FeedTopic, as type: Detail.Type = AppValue.self, since position: Int64? = nil,
        opened: @escaping @Sendable () async throws -> Void = {}
    ) -> AsyncThrowingStream<TopicEvent<Detail>, any Error> {
        let events = doors.changes([topic], since: position)
        return AsyncThrowingStream<TopicEvent<Detail>, any Error>(keeping: .unbounded) { consumer in
            for try await event in events {
                switch event {
                case .ready, .reset: try await opened()
                case .change(let change):
                    let detail = change.data.flatMap { try? AppJSON.decode(Detail.self, from: $0) }
                    consumer.yield(
                        TopicEvent(seq: change.seq, ref: change.ref, change: change.change, detail: detail))
                }
            }
        }
    }

    /// The changes of some topics behind a position, once, at most 500. Without topics those of all.
    public func changes(of topics: Set<FeedTopic> = [], since position: Int64, page: Int = 100) async throws
        -> [FeedChange]
    {
        try await doors.ask(
            "feed_mine",
            [
                "since": .int(position), "page": AppValue(page),
                "topics": topics.isEmpty ? .null : AppValue(topics.map(\.rawValue).sorted()),
            ])
    }
}

extension AsyncThrowingStream where Element: Sendable & Equatable, Failure == any Error {
    /// Without what says the same as the one before.
    var withoutRepeats: AsyncThrowingStream<Element, any Error> {
        AsyncThrowingStream<Element, any Error>(keeping: .bufferingNewest(16)) { consumer in
            var last: Element?
            for try await element in self where element != last {
                consumer.yield(element)
                last = element
            }
        }
    }
}
