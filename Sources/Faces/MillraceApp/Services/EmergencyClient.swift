public import Foundation

/// Checking in from time to time; contacts are told when that is missed.
public protocol CheckInClient: Sendable {
    /// Returns the new expiry. `at` is when it happened; the gateway's clock decides whether it counts. The place waits for a day, for
    /// the case that an alarm follows.
    func checkIn(at: Date, place: CheckInPlace?) async throws -> Submission<Date>
    /// Begins to watch, or changes how; it counts as a check-in. Returns the new expiry.
    func arm(_ watch: WatchSettings) async throws -> Submission<Date>
    /// How often to check in. Returns the new expiry; nil: the watch does not run.
    func setInterval(_ interval: Duration) async throws -> Submission<Date?>
    /// No check-in counts as missed until then. Returns the new expiry.
    func pause(until: Date) async throws -> Submission<Date>
    /// False: it was disarmed before. An alarm that is open stays open.
    func disarm(reason: String?) async throws -> Submission<Bool>
    /// nil: there are neither a watch nor contacts nor alarms.
    func state() async throws -> CheckInState?
}

extension CheckInClient {
    /// Checks in now.
    public func checkIn() async throws -> Submission<Date> { try await checkIn(at: Date(), place: nil) }
    /// Without a place.
    public func checkIn(at: Date) async throws -> Submission<Date> { try await checkIn(at: at, place: nil) }
    /// Checks in now, at this place.
    public func checkIn(place: CheckInPlace?) async throws -> Submission<Date> {
        try await checkIn(at: Date(), place: place)
    }
    /// Without a reason.
    public func disarm() async throws -> Submission<Bool> { try await disarm(reason: nil) }
}

/// Contacts, calls for help, and answers to them.
public protocol EmergencyClient: Sendable {
    /// The contact is asked; returns how many of its addresses have agreed before.
    func setContact(_ contact: EmergencyContact) async throws -> Submission<Int>
    /// The contact is told of nothing any more. False: it was none.
    func removeContact(_ contact: String) async throws -> Submission<Bool>
    /// As a contact: agrees to be told of this person's alarms, or does not.
    func accept(_ person: String, agrees: Bool) async throws -> Submission<Int>
    /// Help, now. The contacts who have agreed see the place on the page of the alarm, until a day after its end.
    func help(note: String?, place: CheckInPlace?) async throws -> Submission<HelpAnswer>
    /// As a contact, to an alarm; the person itself says `safe`. Returns the alarm's state.
    func respond(to alarm: UUID, _ answer: AlarmAnswer) async throws -> Submission<String>
    /// The whole chain, marked as a test.
    func drill() async throws -> UUID
    /// Alarms that concern the person who is signed in, its own and those that it is a contact for, from now on.
    func alarmChanges() -> AsyncThrowingStream<FeedChange, any Error>
}

extension EmergencyClient {
    /// Without a note.
    public func help() async throws -> Submission<HelpAnswer> { try await help(note: nil, place: nil) }
    /// Without a place.
    public func help(note: String?) async throws -> Submission<HelpAnswer> { try await help(note: note, place: nil) }
    /// Without a note, at this place.
    public func help(place: CheckInPlace?) async throws -> Submission<HelpAnswer> {
        try await help(note: nil, place: place)
    }
}

/// How a watch is kept.
public struct WatchSettings: Sendable, Hashable {
    /// How long after a check-in the next one is due.
    public var every: Duration
    /// The least time that is left after the interval was shortened.
    public var grace: Duration
    /// How long before the expiry the person is warned.
    public var warnings: [Duration]
    /// Where the person is, such as `Europe/Berlin`.
    public var zone: String

    /// From its parts.
    public init(
        every: Duration = .seconds(3600), grace: Duration = .seconds(300), warnings: [Duration] = [.seconds(600)],
        zone: String = "UTC"
    ) {
        (self.every, self.grace, self.warnings, self.zone) = (every, grace, warnings, zone)
    }
}

/// A watch with its contacts and open alarms.
public struct CheckInState: Sendable, Hashable, Decodable {
    /// Whose it is.
    public let person: String
    /// `armed`, `warned`, `paused`, `expired` or `disarmed`; nil: there is no watch.
    public let state: String?
    /// When the person was last known to be well.
    public let lastCheckedIn: Date?
    /// When the next check-in is due.
    public let checkInExpiration: Date?
    /// As text, such as `01:00:00`; see `interval`.
    public let checkInInterval: String?
    /// Until when it is paused.
    public let pausedUntil: Date?
    /// Who is told.
    public let contacts: [Contact]
    /// What is open.
    public let alarms: [OpenAlarm]

    /// For doubles of your own.
    public init(
        person: String, state: String? = nil, lastCheckedIn: Date? = nil, checkInExpiration: Date? = nil,
        checkInInterval: String? = nil, pausedUntil: Date? = nil, contacts: [Contact], alarms: [OpenAlarm]
    ) {
        self.person = person
        self.state = state
        self.lastCheckedIn = lastCheckedIn
        self.checkInExpiration = checkInExpiration
        self.checkInInterval = checkInInterval
        self.pausedUntil = pausedUntil
        self.contacts = contacts
        self.alarms = alarms
    }

    /// How long after a check-in the next one is due.
    public var interval: Duration? { checkInInterval.flatMap(SpanCoding.duration) }

    /// Somebody who is told.
    public struct Contact: Sendable, Hashable, Decodable {
        /// Its person id or name.
        public let contact: String
        /// Its turn; 1 is told first.
        public let step: Int
        /// How it is reached.
        public let channels: [Channel]?
        /// How the person calls it.
        public let name: String?
        /// A group of the person's own.
        public let label: String?
        /// What it sees of the watch: `nothing`, `state` or `times`.
        public let shares: String?
        /// How long the next step waits for its answer.
        public let waitSeconds: Double?

        /// For doubles of your own.
        public init(
            contact: String, step: Int, channels: [Channel]? = nil, name: String? = nil, label: String? = nil,
            shares: String? = nil, waitSeconds: Double? = nil
        ) {
            (self.contact, self.step, self.channels) = (contact, step, channels)
            (self.name, self.label, self.shares, self.waitSeconds) = (name, label, shares, waitSeconds)
        }
    }
    /// One way to reach a contact.
    public struct Channel: Sendable, Hashable, Decodable {
        /// `mail`, `sms`, `voice` or `push`.
        public let channel: String
        /// nil for push.
        public let address: String?
        /// `given`, `asked`, `declined`, `held` or `none`.
        public let consent: String

        /// For doubles of your own.
        public init(
            channel: String, address: String? = nil, consent: String
        ) {
            self.channel = channel
            self.address = address
            self.consent = consent
        }
    }
    /// An alarm that nobody has ended.
    public struct OpenAlarm: Sendable, Hashable, Identifiable, Decodable {
        /// Names it for ever.
        public let id: UUID
        /// `open`, `acknowledged`, `unreachable` or `resolved`.
        public let state: String
        /// `expired`, `help` or `drill`.
        public let cause: String
        /// When it began.
        public let raisedAt: Date
        /// Who has been told.
        public let told: [String]
        /// Nobody can be told.
        public let reachesNobody: Bool

        /// For doubles of your own.
        public init(
            id: UUID, state: String, cause: String, raisedAt: Date, told: [String], reachesNobody: Bool
        ) {
            self.id = id
            self.state = state
            self.cause = cause
            self.raisedAt = raisedAt
            self.told = told
            self.reachesNobody = reachesNobody
        }
    }
}

/// A contact as the person names it.
public struct EmergencyContact: Sendable, Hashable {
    /// Its person id, if it has an account; else any name.
    public var name: String
    /// 1 is told first.
    public var step: Int
    /// A mail address.
    public var mail: String?
    /// A number with its country, such as +4915112345678.
    public var sms: String?
    /// A number that is called.
    public var voice: String?
    /// To its own devices, if it has an account.
    public var push: Bool
    /// How long the next step waits for an answer.
    public var wait: Duration

    /// From its parts.
    public init(
        _ name: String, step: Int = 1, mail: String? = nil, sms: String? = nil, voice: String? = nil,
        push: Bool = false, wait: Duration = .seconds(300)
    ) {
        (self.name, self.step, self.mail, self.sms) = (name, step, mail, sms)
        (self.voice, self.push, self.wait) = (voice, push, wait)
    }
}

/// Who is told of a call for help.
public struct HelpAnswer: Sendable, Hashable, Decodable {
    /// Its id, for an answer.
    public let alarm: UUID
    /// `open`, `acknowledged`, `unreachable` or `resolved`.
    public let state: String
    /// Who has been told.
    public let told: [String]
    /// Whose turn is still to come.
    public let toTell: [String]
    /// Nobody can be told: say so to the person at once.
    public let reachesNobody: Bool
    /// The same for people.
    public let sentence: String
    /// Whether the place counts; nil: none was given. One that cannot be right is left out, and help is called all the same.
    public let placeUsed: Bool?

    /// For doubles of your own.
    public init(
        alarm: UUID, state: String, told: [String], toTell: [String], reachesNobody: Bool, sentence: String,
        placeUsed: Bool? = nil
    ) {
        self.alarm = alarm
        self.state = state
        self.told = told
        self.toTell = toTell
        self.reachesNobody = reachesNobody
        self.sentence = sentence
        self.placeUsed = placeUsed
    }
}

/// What a contact says to an alarm.
public enum AlarmAnswer: String, Sendable, CaseIterable {
    /// Has seen it.
    case acknowledged
    /// Goes there.
    case onMyWay = "on_my_way"
    /// Cannot help. Once all say so, the next contacts are told.
    case cannot
    /// The person is safe: the alarm ends.
    case safe
}
