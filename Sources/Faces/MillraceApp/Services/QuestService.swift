public import Foundation

/// The family's quest of the day, and points.
public protocol QuestService: Sendable {
    /// The quest of the family's day, and who has done it.
    func today(in family: String) async throws -> Quest
    /// `at` is when it was done; nil as the day: that day.
    func complete(in family: String, day: AppDay?, at: Date) async throws -> Submission<QuestResult>
    /// Several days at once, all or none.
    func complete(_ days: [AppDay], in family: String) async throws -> [QuestResult]
    /// Today's, now and after each change.
    func streamToday(in family: String) -> AsyncThrowingStream<Quest, any Error>
    /// A parent undoes it for others, too.
    func undo(in family: String, person: String?, day: AppDay?) async throws -> Submission<QuestResult>
    /// The newest first.
    func history(of person: String?, after: AppDay?) async throws -> [QuestDay]
    /// All points so far; of the person who is signed in, or of a member of its family.
    func points(of person: String?) async throws -> Int
}

extension QuestService {
    /// Completes today's quest now.
    public func complete(in family: String) async throws -> Submission<QuestResult> {
        try await complete(in: family, day: nil, at: Date())
    }
    /// Undoes the own one of today.
    public func undo(in family: String) async throws -> Submission<QuestResult> {
        try await undo(in: family, person: nil, day: nil)
    }
    /// Of the person who is signed in.
    public func history() async throws -> [QuestDay] { try await history(of: nil, after: nil) }
    /// Of the person who is signed in.
    public func points() async throws -> Int { try await points(of: nil) }
}

/// A family's quest of a day.
public struct Quest: Sendable, Hashable, Identifiable, Decodable {
    /// Its name in the catalogue, where it has one.
    public let id: String?
    /// What the app shows.
    public let title: String
    /// More about it.
    public let description: String?
    /// `share_hobby`, `daily_mood` or `family_chat`.
    public let kind: String
    /// Whose it is.
    public let family: String
    /// The day, on the family's calendar.
    public let day: AppDay
    /// `open` or `done`.
    public let state: String
    /// When the day ends.
    public let endsAt: Date
    /// The family's, in days.
    public let streak: Int
    /// Missed days that do not end the streak.
    public let freezes: Int
    /// Who has completed it.
    public let completedBy: [String]
    /// By the person who asks.
    public let completed: Bool

    /// For doubles of your own.
    public init(
        id: String? = nil, title: String, description: String? = nil, kind: String, family: String, day: AppDay,
        state: String, endsAt: Date, streak: Int, freezes: Int, completedBy: [String], completed: Bool
    ) {
        self.id = id
        self.title = title
        self.description = description
        self.kind = kind
        self.family = family
        self.day = day
        self.state = state
        self.endsAt = endsAt
        self.streak = streak
        self.freezes = freezes
        self.completedBy = completedBy
        self.completed = completed
    }
}

/// What completing or undoing it came to.
public struct QuestResult: Sendable, Hashable, Decodable {
    /// The points for it; negative when they were taken back.
    public let awarded: Int
    /// All points of the person.
    public let total: Int
    /// The day, on the family's calendar.
    public let day: AppDay

    /// For doubles of your own.
    public init(
        awarded: Int, total: Int, day: AppDay
    ) {
        self.awarded = awarded
        self.total = total
        self.day = day
    }
}

/// A quest of the past.
public struct QuestDay: Sendable, Hashable, Decodable {
    /// The day, on the family's calendar.
    public let day: AppDay
    /// `share_hobby`, `daily_mood` or `family_chat`.
    public let kind: String
    /// What the app shows.
    public let title: String
    /// `open`, `done` or `missed`.
    public let state: String
    /// By this person.
    public let completed: Bool
    /// When.
    public let at: Date?
    /// After the end of its day, within the grace.
    public let late: Bool
    /// Its name in the catalogue, where it has one.
    public let id: String?
    /// More about it.
    public let description: String?

    /// For doubles of your own.
    public init(
        day: AppDay, kind: String, title: String, state: String, completed: Bool, at: Date? = nil, late: Bool,
        id: String? = nil, description: String? = nil
    ) {
        self.day = day
        self.kind = kind
        self.title = title
        self.state = state
        self.completed = completed
        self.at = at
        self.late = late
        self.id = id
        self.description = description
    }
}
