public import FoundationEssentials
public import MillraceJobs

/// A message, enqueued from Swift: `client.enqueue(SendMail(…), queue: "mail")`. What is allowed is what SQL's `mail_send` allows; what
/// is not is refused when the job first runs, and the job dies with the reason.
public struct SendMail: Job {
    /// `mail.send`.
    public static let kind = "mail.send"

    /// The recipients: `ada@example.org` or `Ada <ada@example.org>`.
    public var recipients: [String]
    /// One line; a template has its own.
    public var subject: String?
    /// The plain part.
    public var bodyText: String?
    /// The HTML part.
    public var bodyHTML: String?
    /// In place of subject and parts.
    public var template: String?
    /// The template's data.
    public var data: [String: String]?
    /// Such as pt-BR.
    public var locale: String?
    /// low, normal, high or urgent.
    public var priority: String?
    /// transactional, security or marketing.
    public var purpose: String?
    /// Not sent before.
    public var scheduledAt: Date?
    /// Not sent after.
    public var expiresAt: Date?
    /// The sender, for the limit on each sender.
    public var sender: String?
    /// Who reads it: where the message gives none, the template takes its language and `user_name` from this person's profile.
    public var person: String?

    /// A message in your own words.
    public init(to recipients: [String], subject: String, text: String?, html: String? = nil) {
        self.recipients = recipients
        self.subject = subject
        bodyText = text
        bodyHTML = html
    }

    /// A message in a template's words.
    public init(to recipients: [String], template: String, data: [String: String] = [:], locale: String? = nil) {
        self.recipients = recipients
        self.template = template
        self.data = data
        self.locale = locale
    }

    enum CodingKeys: String, CodingKey {
        case recipients, subject
        case bodyText = "body_text"
        case bodyHTML = "body_html"
        case template, data, locale, priority, purpose
        case scheduledAt = "scheduled_at"
        case expiresAt = "expires_at"
        case sender, person
    }

    /// Optional fields that are nil are left out, and points in time are written as Postgres reads them.
    public func encode(to encoder: any Encoder) throws {
        var box = encoder.container(keyedBy: CodingKeys.self)
        try box.encode(recipients, forKey: .recipients)
        try box.encodeIfPresent(subject, forKey: .subject)
        try box.encodeIfPresent(bodyText, forKey: .bodyText)
        try box.encodeIfPresent(bodyHTML, forKey: .bodyHTML)
        try box.encodeIfPresent(template, forKey: .template)
        try box.encodeIfPresent(data, forKey: .data)
        try box.encodeIfPresent(locale, forKey: .locale)
        try box.encodeIfPresent(priority, forKey: .priority)
        try box.encodeIfPresent(purpose, forKey: .purpose)
        try box.encodeIfPresent(scheduledAt?.formatted(.iso8601), forKey: .scheduledAt)
        try box.encodeIfPresent(expiresAt?.formatted(.iso8601), forKey: .expiresAt)
        try box.encodeIfPresent(sender, forKey: .sender)
        try box.encodeIfPresent(person, forKey: .person)
    }

    /// What ``encode(to:)`` has written.
    public init(from decoder: any Decoder) throws {
        let box = try decoder.container(keyedBy: CodingKeys.self)
        func time(_ key: CodingKeys) throws -> Date? {
            try box.decodeIfPresent(String.self, forKey: key).map { try Date($0, strategy: .iso8601) }
        }
        recipients = try box.decode([String].self, forKey: .recipients)
        subject = try box.decodeIfPresent(String.self, forKey: .subject)
        bodyText = try box.decodeIfPresent(String.self, forKey: .bodyText)
        bodyHTML = try box.decodeIfPresent(String.self, forKey: .bodyHTML)
        template = try box.decodeIfPresent(String.self, forKey: .template)
        data = try box.decodeIfPresent([String: String].self, forKey: .data)
        locale = try box.decodeIfPresent(String.self, forKey: .locale)
        priority = try box.decodeIfPresent(String.self, forKey: .priority)
        purpose = try box.decodeIfPresent(String.self, forKey: .purpose)
        scheduledAt = try time(.scheduledAt)
        expiresAt = try time(.expiresAt)
        sender = try box.decodeIfPresent(String.self, forKey: .sender)
        person = try box.decodeIfPresent(String.self, forKey: .person)
    }
}
