import Foundation

/// What the doubles know: as much of the gateway's rules as an app can see.
struct MemoryState: Sendable {
    var now: @Sendable () -> Date
    var makeID: @Sendable () -> UUID

    var families: [String: Family] = [:]
    /// Invitations that were declined, by family and person.
    var declined: Set<[String]> = []
    var profiles: [String: Profile] = [:]
    var moods: [UUID: StoredMood] = [:]
    var hobbies: [UUID: StoredHobby] = [:]
    var cards: [UUID: StoredCard] = [:]
    /// By person, then by what they are for: each is given once.
    var points: [String: [String: Int]] = [:]
    /// By family and day: who has done the quest, and when.
    var completions: [String: [AppDay: [String: Date]]] = [:]
    var quests: [AppDay: (kind: String, title: String)] = [:]
    var watches: [String: Watch] = [:]
    var contacts: [String: [String: StoredContact]] = [:]
    var alarms: [UUID: StoredAlarm] = [:]
    /// The newest place of each person, given with a check-in or a call for help.
    var whereabouts: [String: CheckInPlace] = [:]
    var devices: [String: String] = [:]
    var preferences: [String: NoticePreferences] = [:]
    var notices: [String: [String: StoredNotice]] = [:]
    var uploads: [String: Data] = [:]
    var documents: [UUID: StoredDocument] = [:]
    var analyses: [UUID: DocumentAnalysis] = [:]
    var pictures: [UUID: StoredPicture] = [:]
    var threads: [UUID: StoredThread] = [:]
    var lessons: [String: [String: StoredLesson]] = [:]
    /// What orders threads, messages and lessons.
    var places = 0
    /// Those that are on.
    var flags: Set<String> = []
    /// As `subscription_mine` answers them.
    var subscriptions: [String: AppValue] = [:]
    var mails: [UUID: (owner: String, status: MailProgress)] = [:]
    var feed: [(person: String, change: FeedChange)] = []
    /// Registered documents are read at once.
    var readsDocuments = true
    /// The files of pictures are made at once.
    var makesPictures = true

    struct Family: Sendable {
        var zone: String
        var members: [String: FamilyRole]
        var invitations: [String: Invitation] = [:]
    }
    struct Profile: Sendable, Hashable {
        var displayName: String?
        var locale: String?
        var zone: String?
        var reminderHour: Int?
        var avatar: String?
        var map: String?
    }
    struct StoredMood: Sendable {
        let person: String
        let family: String?
        let given: NewMood
        let mood: Mood
        var isDeleted = false
    }
    struct StoredHobby: Sendable {
        let person: String
        let family: String?
        let name: String
        var fact: String
        let at: Date
        var seenBy: [String] = []
    }
    struct StoredCard: Sendable {
        let hobby: UUID
        let family: String
        let at: Date
        var question: String?
        /// By person: whether the answer was right.
        var answers: [String: Bool] = [:]
    }
    struct Watch: Sendable {
        var settings: WatchSettings
        var state: String
        var lastCheckedIn: Date
        var expiration: Date?
        var pausedUntil: Date?
    }
    struct StoredContact: Sendable {
        var contact: EmergencyContact
        var consent = "asked"
        var name: String?
        var label: String?
        var shares = "nothing"
    }
    struct StoredAlarm: Sendable {
        let person: String
        let cause: String
        var state = "open"
        let raisedAt: Date
        var told: [String]
        var note: String?
        var answers: [EmergencyAlarm.Answer] = []
    }
    struct StoredNotice: Sendable {
        let id: UUID
        var notice: OwnNotice
        var isCancelled = false
    }
    struct StoredDocument: Sendable {
        let owner: String
        let storageURL: String
        let details: DocumentDetails
        var document: Document
        var data: Data
        var text: String
    }

    // MARK: what all rooms need

    /// A time of a device, by the gateway's clock. Up to two minutes are none, as the gateway has it.
    func byOurClock(_ at: Date, _ clock: DeviceClock?) -> Date {
        guard let clock else { return at }
        let lag = now().timeIntervalSince(clock())
        return abs(lag) > 120 ? at.addingTimeInterval(lag) : at
    }

    /// The same for what has happened, which is never later than now.
    func happened(_ at: Date, _ clock: DeviceClock?) -> Date { min(byOurClock(at, clock), now()) }

    func family(of person: String) -> (name: String, family: Family)? {
        families.first { $0.value.members[person] != nil }.map { ($0.key, $0.value) }
    }

    func mustBeIn(_ name: String, _ person: String) throws {
        guard families[name]?.members[person] != nil else {
            throw AppError(.permission, "only a member may do this", field: "actor")
        }
    }

    /// Today where this person lives.
    func today(of person: String) -> AppDay { day(of: now(), person) }

    func day(of at: Date, _ person: String) -> AppDay {
        let zone = family(of: person)?.family.zone ?? profiles[person]?.zone ?? "UTC"
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(identifier: zone) ?? .gmt
        let parts = calendar.dateComponents([.year, .month, .day], from: at)
        return AppDay(year: parts.year ?? 1970, month: parts.month ?? 1, day: parts.day ?? 1)
    }

    func endOfDay(_ day: AppDay, zone: String) -> Date {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(identifier: zone) ?? .gmt
        let next = day.adding(days: 1)
        return calendar.date(from: DateComponents(year: next.year, month: next.month, day: next.day)) ?? now()
    }

    func total(of person: String) -> Int { points[person, default: [:]].values.reduce(0, +) }

    /// The points that this gave; 0 when it was given before.
    mutating func award(_ person: String, _ key: String, _ count: Int) -> Int {
        guard points[person, default: [:]][key] == nil else { return 0 }
        points[person, default: [:]][key] = count
        return count
    }

    mutating func changed(
        _ topic: FeedTopic, _ ref: String, _ change: String, for people: some Sequence<String>, _ data: AppValue? = nil
    ) {
        for person in people {
            let next = Int64(feed.count + 1)
            feed.append(
                (
                    person,
                    FeedChange(seq: next, at: now(), topic: topic.rawValue, ref: ref, change: change, data: data)
                ))
        }
    }

    func relatives(of person: String) -> [String] {
        family(of: person).map { $0.family.members.keys.sorted() } ?? [person]
    }
}
