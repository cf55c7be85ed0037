public import Foundation

/// What concerns the person who is signed in.
public enum FeedTopic: String, Sendable, CaseIterable {
    /// Documents and their pages.
    case documents
    /// The person's watch, its contacts, and those who share theirs.
    case checkIns = "check-ins"
    /// Alarms of the person, and those that it is told of.
    case alarms
    /// The family's quest, points and hobbies.
    case quests
    /// Moods of the person, and those that its family shares.
    case moods
    /// Notices to the person.
    case notices
    /// Mails of the person, and what became of them.
    case mail
    /// Threads and messages.
    case chat
    /// Lessons.
    case lessons
    /// Subscriptions, and what they allow.
    case subscriptions
    /// Questions to models, and their answers.
    case ai
    /// Pictures and other files that are made.
    case media
    /// The family, invitations and profiles.
    case people
}

/// Something has changed.
public struct FeedChange: Sendable, Hashable, Decodable {
    /// The position of this change: grows, and is the place to go on from.
    public let seq: Int64
    /// When.
    public let at: Date
    /// One of `FeedTopic`, or of a later version.
    public let topic: String
    /// What has changed: a document's id, an alarm's, a person.
    public let ref: String
    /// How, such as `created`, `updated` or `deleted`.
    public let change: String
    /// What is known of it.
    public let data: AppValue?

    /// From its parts.
    public init(seq: Int64, at: Date, topic: String, ref: String, change: String, data: AppValue? = nil) {
        (self.seq, self.at, self.topic, self.ref, self.change, self.data) = (seq, at, topic, ref, change, data)
    }
}

/// An event of a stream of changes.
public enum FeedEvent: Sendable, Hashable {
    /// The stream is open: what changes from here on will come. A state that is read after this misses nothing.
    case ready(position: Int64)
    /// Something has changed since the stream opened, or since the position that it was opened with.
    case change(FeedChange)
    /// Some changes are gone from the feed: read the state again. The stream goes on from here.
    case reset(position: Int64)
}

/// Up to 500 changes.
public struct FeedPage: Sendable, Hashable, Decodable {
    /// The oldest first.
    public let events: [FeedChange]
    /// Where the next pull begins.
    public let position: Int64
    /// There are more: pull again.
    public let more: Bool
    /// Some changes are gone from the feed: read the state again.
    public let reset: Bool

    /// For doubles of your own.
    public init(events: [FeedChange], position: Int64, more: Bool = false, reset: Bool = false) {
        (self.events, self.position, self.more, self.reset) = (events, position, more, reset)
    }
}

/// The feed of changes. A stream connects again by itself, after pauses that grow, and goes on behind the last change that it gave.
public protocol FeedClient: Sendable {
    /// - Parameters:
    ///   - topics: all, if there are none.
    ///   - position: goes on behind this one; nil: from now on.
    func changes(_ topics: Set<FeedTopic>, since position: Int64?) -> AsyncThrowingStream<FeedEvent, any Error>
    /// What has changed since a position, once: for an app that the system wakes for a moment. 0: all that is kept.
    func pull(since position: Int64) async throws -> FeedPage
}

extension FeedClient {
    /// Of these topics; without any, of all.
    public func changes(
        _ topics: FeedTopic..., since position: Int64? = nil
    ) -> AsyncThrowingStream<FeedEvent, any Error> {
        changes(Set(topics), since: position)
    }
}
