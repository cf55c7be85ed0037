public import Foundation

/// Lessons, which documents belong to by their `lessonID`.
public protocol LessonService: Sendable {
    /// nil leaves the title as it is.
    func put(_ id: String, title: String?) async throws -> LessonOutcome
    func lesson(_ id: String) async throws -> Lesson
    /// The newest first; what they say as `next` is the `after` of the next page.
    func lessons(after: String?) async throws -> [Lesson]
    /// With their documents, ten at a time; tells how many are done after each ten.
    func delete(_ ids: [String]) -> AsyncThrowingStream<DeleteProgress, any Error>
    /// What happens to lessons from now on.
    func streamLessonUpdates() -> AsyncThrowingStream<LessonUpdate, any Error>
}

extension LessonService {
    /// The newest ones.
    public func lessons() async throws -> [Lesson] { try await lessons(after: nil) }
}

/// What came of `put`.
public enum LessonOutcome: String, Sendable, Codable {
    case created, updated, unchanged
}

/// A lesson, and how its documents stand.
public struct Lesson: Sendable, Hashable, Identifiable, Decodable {
    /// The app's own name for it.
    public let id: String
    /// What it is called.
    public let title: String?
    /// How many documents it has.
    public let documents: Int
    /// How many of them are being read.
    public let underWay: Int
    /// How many could not be read.
    public let failed: Int
    /// When the last document under way ended.
    public let completedAt: Date?
    /// Where the next page begins.
    public let next: String

    /// For doubles of your own.
    public init(
        id: String, title: String?, documents: Int, underWay: Int, failed: Int, completedAt: Date? = nil, next: String
    ) {
        (self.id, self.title, self.documents, self.underWay) = (id, title, documents, underWay)
        (self.failed, self.completedAt, self.next) = (failed, completedAt, next)
    }
}

/// Something has happened to a lesson.
public struct LessonUpdate: Sendable, Hashable {
    /// What can happen.
    public enum Change: String, Sendable, CaseIterable {
        case created, updated, deleted
        case processingComplete = "processing_complete"
    }

    /// Which lesson.
    public let lesson: String
    /// What has happened.
    public let change: Change

    /// For doubles of your own.
    public init(lesson: String, change: Change) { (self.lesson, self.change) = (lesson, change) }

    /// nil: a change of a later version, or of something else.
    init?(_ change: FeedChange) {
        guard change.topic == FeedTopic.lessons.rawValue, let kind = Change(rawValue: change.change) else { return nil }
        (lesson, self.change) = (change.ref, kind)
    }
}

extension AsyncThrowingStream<FeedEvent, any Error> {
    /// The lessons' changes alone.
    func lessonUpdates() -> AsyncThrowingStream<LessonUpdate, any Error> {
        AsyncThrowingStream<LessonUpdate, any Error>(keeping: .unbounded) { consumer in
            for try await event in self {
                if case .change(let change) = event, let update = LessonUpdate(change) { consumer.yield(update) }
            }
        }
    }
}
