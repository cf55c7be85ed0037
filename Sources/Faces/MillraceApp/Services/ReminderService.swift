public import Foundation

/// One notice that is not wanted, without a word about the others.
public struct ReminderService: Sendable {
    private let doors: any DoorCaller

    /// On what calls functions.
    public init(_ doors: any DoorCaller) { self.doors = doors }

    /// Not today. False: none waited any more.
    public func cancel(_ reminder: Reminder = .daily) async throws -> Bool {
        try await doors.act("reminder_cancel", ["person": doors.me, "kind": .string(reminder.rawValue)])
    }

    /// The notice that a mood may be shared; the mood is shared all the same. False: none waited any more.
    public func cancelNotice(ofMood mood: UUID) async throws -> Bool {
        try await doors.act("mood_notice_cancel", ["id": AppValue(mood)])
    }

    /// By which channels one kind of notice is told; none: not at all; nil: as if nothing had been said of it. False: it was so already.
    public func setChannels(of kind: String, _ channels: [String]?) async throws -> Bool {
        try await doors.act(
            "notice_kind", ["person": doors.me, "kind": .string(kind), "channels": AppValue(channels)])
    }
}

/// What reminds of the open day.
public enum Reminder: String, Sendable, CaseIterable {
    /// No mood is logged yet today.
    case daily = "daily_reminder"
    /// The day has a new quest.
    case questAvailable = "quest_available"
    /// Several days have passed at once; this one tells of all of them.
    case questSummary = "quest_summary"
    /// A streak ends if nothing is done today.
    case streakAtRisk = "streak_at_risk"
}
