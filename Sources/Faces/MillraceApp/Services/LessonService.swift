public import Foundation

/// Lessons, which documents belong to by their `lessonID`.
public protocol LessonService: Sendable {
    /// nil leaves a value as it is. `data` is an object of the app's own.
    func put(_ id: String, title: String?, data: [String: AppValue]?) async throws -> Submission<LessonOutcome>
    /// The lesson, and how its documents stand.
    func lesson(_ id: String) async throws -> Lesson
    /// The newest first; what they say as `next` is the `after` of the next page.
    func lessons(after: String?) async throws -> [Lesson]
    /// One with its documents, with or without a network. False: it was deleted before.
    func delete(_ id: String) async throws -> Submission<Bool>
    /// With their documents, ten at a time; tells how many are done after each ten.
    func delete(_ ids: [String]) -> AsyncThrowingStream<DeleteProgress, any Error>
    /// What happens to lessons from now on.
    func streamLessonUpdates() -> AsyncThrowingStream<LessonUpdate, any Error>
}

extension LessonService {
    /// The newest ones.
    public func lessons() async throws -> [Lesson] { try await lessons(after: nil) }
    /// Without data.
    public func put(_ id: String, title: String?) async throws -> Submission<LessonOutcome> {
        try await put(id, title: title, data: nil)
    }
    /// What happens to lessons from now on, each time with the lesson as it is then; nil: it is gone.
    public func streamLessons() -> AsyncThrowingStream<LessonNews, any Error> {
        let updates = streamLessonUpdates()
        return AsyncThrowingStream<LessonNews, any Error>(keeping: .unbounded) { consumer in
            for try await update in updates {
                do {
                    consumer.yield(LessonNews(update: update, lesson: try await lesson(update.lesson)))
                } catch let error as AppError where error.kind == .notFound {
                    consumer.yield(LessonNews(update: update, lesson: nil))
                }
            }
        }
    }
}

/// What has happened to a lesson, and how it is now.
public struct LessonNews: Sendable, Hashable {
    /// What has happened.
    public let update: LessonUpdate
    /// nil: it is gone.
    public let lesson: Lesson?

    /// For doubles of your own.
    public init(update: LessonUpdate, lesson: Lesson?) { (self.update, self.lesson) = (update, lesson) }
}

/// What came of `put`.
public enum LessonOutcome: String, Sendable, Codable {
    /// It is new.
    case created
    /// It was there, and has changed.
    case updated
    /// It was there as it is.
    case unchanged
}

/// A lesson, and how its documents stand.
public struct Lesson: Sendable, Hashable, Identifiable, Decodable {
    /// The app's own name for it.
    public let id: String
    /// What it is called.
    public let title: String?
    /// The app's own.
    public let data: [String: AppValue]?
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
        id: String, title: String?, data: [String: AppValue]? = nil, documents: Int, underWay: Int, failed: Int,
        completedAt: Date? = nil, next: String
    ) {
        self.data = data
        (self.id, self.title, self.documents, self.underWay) = (id, title, documents, underWay)
        (self.failed, self.completedAt, self.next) = (failed, completedAt, next)
    }
}

/// Something has happened to a lesson.
public struct LessonUpdate: Sendable, Hashable {
    /// What can happen.
    public enum Change: String, Sendable, CaseIterable {
        /// It was put for the first time.
        case created
        /// Its title or its data have changed.
        case updated
        /// It was deleted, with its documents.
        case deleted
        /// Nothing of its documents is under way any more.
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
