public import Foundation

/// Devices that get pushes, what a person wants to be told, and notices that it sets for itself.
public protocol NotificationClient: Sendable {
    /// Call it at each start: the token of a device changes. True: it is new to this person.
    func addDevice(_ token: String, _ platform: PushPlatform, app: String?) async throws -> Submission<Bool>
    /// Call it at sign-out: the device gets nothing more. False: it was not known.
    func removeDevice(_ token: String) async throws -> Submission<Bool>
    /// Replaces all of them.
    func setPreferences(_ preferences: NoticePreferences) async throws -> Submission<Bool>
    /// The key moves and cancels it, and makes it happen once.
    func schedule(_ notice: OwnNotice) async throws -> Submission<UUID>
    /// To another time. False: there is none that still waits.
    func move(_ key: String, to at: Date) async throws -> Submission<Bool>
    /// It does not come. False: there is none that still waits.
    func cancel(_ key: String) async throws -> Submission<Bool>
    /// The hour of "Don't forget to log your mood", on the family's clock; nil: the common hour.
    func scheduleDailyReminder(atHour hour: Int?) async throws -> Submission<Bool>
}

/// Who delivers to a device.
public enum PushPlatform: String, Sendable {
    /// Apple, to apps from the App Store and TestFlight.
    case apns
    /// Apple, to apps that Xcode has installed.
    case apnsSandbox = "apns_sandbox"
    /// Firebase Cloud Messaging, to Android.
    case fcm
}

/// What a person wants to be told, how and when.
public struct NoticePreferences: Sendable, Hashable {
    /// Where its hours count, such as `Europe/Berlin`.
    public var zone: String
    /// Local times such as `22:00`; the same twice means that there are no quiet hours.
    public var quietFrom: String
    /// When they end.
    public var quietTo: String
    /// Whether its devices get pushes.
    public var push: Bool
    /// Where mail goes.
    public var mail: String?
    /// A number with its country.
    public var sms: String?
    /// For a kind of notice its channels, such as `["daily_reminder": ["push"]]`.
    public var kinds: [String: [String]]
    /// The language of texts, such as `de`; nil: this device's.
    public var locale: String?

    /// From its parts.
    public init(
        zone: String, quietFrom: String = "00:00", quietTo: String = "00:00", push: Bool = true, mail: String? = nil,
        sms: String? = nil, kinds: [String: [String]] = [:], locale: String? = nil
    ) {
        (self.zone, self.quietFrom, self.quietTo, self.push) = (zone, quietFrom, quietTo, push)
        (self.mail, self.sms, self.kinds, self.locale) = (mail, sms, kinds, locale)
    }
}

/// A notice that a person sets for itself, by push.
public struct OwnNotice: Sendable, Hashable {
    /// What kind it is.
    public var kind: String
    /// For moving and cancelling it.
    public var key: String
    /// When it is due.
    public var at: Date
    /// Its first line.
    public var title: String?
    /// What it says.
    public var body: String?
    /// Where in the app it leads: the push has it as `url`.
    public var url: URL?

    /// From its parts.
    public init(_ kind: String, key: String, at: Date, title: String? = nil, body: String? = nil, url: URL? = nil) {
        (self.kind, self.key, self.at, self.title, self.body, self.url) = (kind, key, at, title, body, url)
    }
}

/// How a person is called, and where it lives.
public protocol UserClient: Sendable {
    /// nil leaves a value as it is, and an empty text clears it.
    func setProfile(displayName: String?, locale: String?, zone: String?) async throws -> Submission<Bool>
    /// Erases the person everywhere.
    func deleteAccount() async throws
}

/// What became of a mail, for a status that the app shows.
public protocol MailStatusClient: Sendable {
    /// How far it is now.
    func status(of id: UUID) async throws -> MailProgress
    /// Now, and after each change, until it does not change any more.
    func streamStatus(of id: UUID) -> AsyncThrowingStream<MailProgress, any Error>
    /// False: it is too late.
    func cancel(_ id: UUID) async throws -> Bool
}

/// How far a mail is.
public struct MailProgress: Sendable, Hashable, Identifiable, Decodable {
    /// The mail's.
    public let id: UUID
    /// What kind it is.
    public let kind: String?
    /// `scheduled`, `queued`, `sending`, `accepted`, `delivered`, `delayed`, `bounced`, `failed`, `cancelled`, …
    public let status: String
    /// Who carries it: `resend`, `supabase_auth`, …
    public let service: String?
    /// When a provider took it.
    public let sentAt: Date?
    /// When it is due.
    public let scheduledAt: Date?
    /// How often it was tried.
    public let attempts: Int?
    /// Why not.
    public let errorClass: String?
    /// For the app's user, when it failed.
    public let userMessage: String?

    /// For doubles of your own.
    public init(
        id: UUID, kind: String? = nil, status: String, service: String? = nil, sentAt: Date? = nil,
        scheduledAt: Date? = nil, attempts: Int? = nil, errorClass: String? = nil, userMessage: String? = nil
    ) {
        self.id = id
        self.kind = kind
        self.status = status
        self.service = service
        self.sentAt = sentAt
        self.scheduledAt = scheduledAt
        self.attempts = attempts
        self.errorClass = errorClass
        self.userMessage = userMessage
    }
}
