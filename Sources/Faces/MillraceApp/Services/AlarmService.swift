public import Foundation

/// The alarms that the person has, and those that it was told of as a contact.
public struct AlarmService: Sendable {
    private let doors: any DoorCaller

    /// On what calls functions.
    public init(_ doors: any DoorCaller) { self.doors = doors }

    /// The newest first. `after` is what the last page said as `next`.
    public func list(isOpen: Bool? = nil, after alarm: UUID? = nil) async throws -> AlarmList {
        try await doors.ask(
            "check_in_alarms", ["is_open": isOpen.map { .bool($0) } ?? .null, "after": AppValue(alarm)])
    }

    /// With its words, answers and place; one's own also with who was told, when and how.
    public func show(_ alarm: UUID) async throws -> EmergencyAlarm {
        try await doors.ask("check_in_alarm_show", ["alarm": AppValue(alarm)])
    }

    /// What is open, now and after each change.
    public func stream() -> AsyncThrowingStream<[EmergencyAlarm], any Error> {
        doors.following(.alarms) { try await list(isOpen: true).alarms }
    }
}

/// Up to twenty alarms.
public struct AlarmList: Sendable, Hashable, Decodable {
    /// The newest first.
    public let alarms: [EmergencyAlarm]
    /// Behind which the next page begins; nil: this is the last.
    public let next: UUID?

    /// For doubles of your own.
    public init(alarms: [EmergencyAlarm], next: UUID? = nil) { (self.alarms, self.next) = (alarms, next) }
}

/// An alarm, as the person or a contact that was told sees it.
public struct EmergencyAlarm: Sendable, Hashable, Identifiable, Decodable {
    /// Names it for ever.
    public let id: UUID
    /// Whose it is.
    public let person: String
    /// Of the person who is signed in.
    public let isOwn: Bool
    /// `open`, `acknowledged`, `unreachable` or `resolved`.
    public let state: String
    /// `expired`, `help` or `drill`.
    public let cause: String
    /// Only a drill.
    public let test: Bool
    /// When it began.
    public let raisedAt: Date
    /// When the check-in was due.
    public let expiredAt: Date?
    /// Who has said that it looks after it.
    public let acknowledgedBy: String?
    /// When it was over.
    public let resolvedAt: Date?
    /// How it was over.
    public let resolution: String?
    /// What the person who is signed in has answered.
    public let answer: String?
    /// How the person is called. This and what follows is for accounts that have agreed.
    public let name: String?
    /// In the reader's language.
    public let title: String?
    /// The same, in some sentences.
    public let body: String?
    /// Where the person was.
    public let place: Place?
    /// What the contacts have answered, the oldest first.
    public let answers: [Answer]?
    /// Who was told, when and how. For the person itself.
    public let events: [Event]?

    private enum CodingKeys: String, CodingKey {
        case id = "alarm"
        case person, isOwn, state, cause, test, raisedAt, expiredAt, acknowledgedBy, resolvedAt, resolution, answer
        case name, title, body, place, answers, events
    }

    /// For doubles of your own.
    public init(
        id: UUID, person: String, isOwn: Bool, state: String, cause: String, raisedAt: Date, expiredAt: Date? = nil,
        acknowledgedBy: String? = nil, resolvedAt: Date? = nil, resolution: String? = nil, answer: String? = nil,
        name: String? = nil, title: String? = nil, body: String? = nil, place: Place? = nil,
        answers: [Answer]? = nil, events: [Event]? = nil
    ) {
        (self.id, self.person, self.isOwn, self.state, self.cause) = (id, person, isOwn, state, cause)
        (test, self.raisedAt, self.expiredAt) = (cause == "drill", raisedAt, expiredAt)
        (self.acknowledgedBy, self.resolvedAt, self.resolution) = (acknowledgedBy, resolvedAt, resolution)
        (self.answer, self.name, self.title, self.body) = (answer, name, title, body)
        (self.place, self.answers, self.events) = (place, answers, events)
    }

    /// Where the person was.
    public struct Place: Sendable, Hashable, Decodable {
        /// In degrees, north is positive.
        public let latitude: Double
        /// In degrees, east is positive.
        public let longitude: Double
        /// In metres; nil: unknown.
        public let accuracy: Double?
        /// When, on the reader's clock, as text.
        public let local: String?
        /// Which map the reader's links open: `geo`, `osm`, `apple` or `google`.
        public let map: String?

        /// For doubles of your own.
        public init(
            latitude: Double, longitude: Double, accuracy: Double? = nil, local: String? = nil, map: String? = nil
        ) {
            (self.latitude, self.longitude, self.accuracy) = (latitude, longitude, accuracy)
            (self.local, self.map) = (local, map)
        }
    }

    /// What a contact has answered.
    public struct Answer: Sendable, Hashable, Decodable {
        /// Who.
        public let contact: String
        /// How it is called.
        public let name: String?
        /// `acknowledged`, `on_my_way`, `cannot` or `safe`.
        public let answer: String
        /// When.
        public let at: Date

        /// For doubles of your own.
        public init(contact: String, name: String? = nil, answer: String, at: Date) {
            (self.contact, self.name, self.answer, self.at) = (contact, name, answer, at)
        }
    }

    /// Something that happened to it.
    public struct Event: Sendable, Hashable, Decodable {
        /// When.
        public let at: Date
        /// What, such as `told`.
        public let what: String
        /// Which contact.
        public let contact: String?
        /// Whose turn it was.
        public let step: Int?
        /// By which channel.
        public let channel: String?
        /// What became of the message.
        public let status: String?
        /// When a provider took it.
        public let acceptedAt: Date?

        /// For doubles of your own.
        public init(
            at: Date, what: String, contact: String? = nil, step: Int? = nil, channel: String? = nil,
            status: String? = nil, acceptedAt: Date? = nil
        ) {
            (self.at, self.what, self.contact, self.step) = (at, what, contact, step)
            (self.channel, self.status, self.acceptedAt) = (channel, status, acceptedAt)
        }
    }
}
