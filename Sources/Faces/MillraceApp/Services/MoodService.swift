public import Foundation

/// Moods, the streak that they make, and a week's numbers.
public protocol MoodService: Sendable {
    /// Its id makes it happen once.
    func log(_ mood: NewMood) async throws -> Submission<UUID>
    /// Several at once, all or none.
    func log(_ moods: [NewMood]) async throws -> [UUID]
    /// False: it was deleted before.
    func delete(_ id: UUID) async throws -> Submission<Bool>
    /// The newest first; of the person who is signed in, or of a member of its family.
    func moods(of person: String?, since: Date?, after: UUID?) async throws -> [Mood]
    /// Today's moods of the person who is signed in, now and after each change.
    func todaysLog() -> AsyncThrowingStream<[Mood], any Error>
    /// How many days in a row have a mood; of the person who is signed in, or of a member of its family.
    func streak(of person: String?) async throws -> MoodStreak
    /// The week that holds this day; nil: this week.
    func weeklyStats(of person: String?, week: AppDay?) async throws -> WeeklyStats
}

extension MoodService {
    /// A mood of now.
    public func log(_ color: MoodColor, emoji: String? = nil) async throws -> Submission<UUID> {
        try await log(NewMood(color, emoji: emoji))
    }
    /// The newest ones.
    public func moods(of person: String? = nil, since: Date? = nil) async throws -> [Mood] {
        try await moods(of: person, since: since, after: nil)
    }
    /// Of the person who is signed in.
    public func streak() async throws -> MoodStreak { try await streak(of: nil) }
    /// This week of the person who is signed in.
    public func weeklyStats() async throws -> WeeklyStats { try await weeklyStats(of: nil, week: nil) }
}

/// The eight colours.
public enum MoodColor: String, Sendable, Codable, CaseIterable {
    /// Gold: `#ffd700`.
    case happy
    /// Coral: `#ff6b6b`.
    case excited
    /// Turquoise: `#4ecdc4`.
    case calm
    /// Violet: `#9b59b6`.
    case anxious
    /// Light blue: `#5dade2`.
    case sad
    /// Red: `#e74c3c`.
    case angry
    /// Orange: `#f39c12`.
    case confused
    /// Grey: `#95a5a6`.
    case tired
}

/// A mood to be logged. Its id makes it happen once.
public struct NewMood: Sendable, Hashable {
    /// Names it for ever.
    public var id = UUID()
    /// How it feels.
    public var color: MoodColor
    /// One emoji.
    public var emoji: String?
    /// When it was so.
    public var at: Date
    /// How long it is kept from the family; nil: as the gateway is set.
    public var buffer: Duration?

    /// From its parts.
    public init(_ color: MoodColor, emoji: String? = nil, at: Date = Date(), buffer: Duration? = nil) {
        (self.color, self.emoji, self.at, self.buffer) = (color, emoji, at, buffer)
    }
}

/// A mood that is logged.
public struct Mood: Sendable, Hashable, Identifiable, Decodable {
    /// Names it for ever.
    public let id: UUID
    /// The day where the person was.
    public let day: AppDay
    /// How it feels.
    public let color: MoodColor
    /// One emoji.
    public let emoji: String?
    /// When it was so.
    public let at: Date
    /// From when the family sees it.
    public let sharedAt: Date

    /// For doubles of your own.
    public init(
        id: UUID, day: AppDay, color: MoodColor, emoji: String? = nil, at: Date, sharedAt: Date
    ) {
        self.id = id
        self.day = day
        self.color = color
        self.emoji = emoji
        self.at = at
        self.sharedAt = sharedAt
    }
}

/// Days in a row with a mood.
public struct MoodStreak: Sendable, Hashable, Decodable {
    /// Whose it is.
    public let person: String
    /// Today, where the person is.
    public let day: AppDay
    /// Until today, or until yesterday while today has none yet.
    public let current: Int
    /// The longest one.
    public let best: Int
    /// Missed days that do not end it.
    public let freezes: Int
    /// How many moods today has.
    public let moodsToday: Int

    /// For doubles of your own.
    public init(
        person: String, day: AppDay, current: Int, best: Int, freezes: Int, moodsToday: Int
    ) {
        self.person = person
        self.day = day
        self.current = current
        self.best = best
        self.freezes = freezes
        self.moodsToday = moodsToday
    }
}

/// A week's numbers.
public struct WeeklyStats: Sendable, Hashable, Decodable {
    /// Whose it is.
    public let person: String
    /// Its first day.
    public let from: AppDay
    /// Its last day.
    public let to: AppDay
    /// How many moods.
    public let moods: Int
    /// On how many days.
    public let moodDays: Int
    /// How many of each colour.
    public let colors: [String: Int]
    /// Quests that were completed.
    public let quests: Int
    /// Hobbies that were saved.
    public let hobbies: Int
    /// Cards that were answered.
    public let cards: Int
    /// Points that were given.
    public let points: Int

    /// For doubles of your own.
    public init(
        person: String, from: AppDay, to: AppDay, moods: Int, moodDays: Int, colors: [String: Int], quests: Int,
        hobbies: Int, cards: Int, points: Int
    ) {
        self.person = person
        self.from = from
        self.to = to
        self.moods = moods
        self.moodDays = moodDays
        self.colors = colors
        self.quests = quests
        self.hobbies = hobbies
        self.cards = cards
        self.points = points
    }
}
