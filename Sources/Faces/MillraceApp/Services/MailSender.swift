public import Foundation

/// Mail from an app. The clients' role needs the grant for it (`grant_enqueue`), and then everybody who is signed in may send: most apps leave it to
/// their server.
public struct MailSender: Sendable {
    private let doors: any DoorCaller

    /// On what calls functions.
    public init(_ doors: any DoorCaller) { self.doors = doors }

    /// Sends a mail. Returns its id, for `mail.status`.
    public func send(_ mail: OutgoingMail) async throws -> UUID {
        try await doors.act(
            "mail_send",
            [
                "recipients": AppValue(mail.recipients), "subject": AppValue(mail.subject),
                "body_text": AppValue(mail.text), "body_html": AppValue(mail.html),
                "template": AppValue(mail.template), "data": mail.data.isEmpty ? .null : .object(mail.data),
                "locale": AppValue(mail.locale), "scheduled_at": AppValue(mail.at), "id": AppValue(mail.id),
            ])
    }

    /// The mail that resets a password.
    public func passwordReset(to recipient: String, token: String, user: String) async throws -> UUID {
        try await doors.act(
            "mail_password_reset",
            ["recipient": .string(recipient), "token": .string(token), "user_id": .string(user)])
    }

    /// The mail that verifies an address.
    public func verification(to recipient: String, token: String) async throws -> UUID {
        try await doors.act(
            "mail_account_verification", ["recipient": .string(recipient), "token": .string(token)])
    }

    /// The mail that welcomes somebody.
    public func welcome(to recipient: String, name: String) async throws -> UUID {
        try await doors.act("mail_welcome", ["recipient": .string(recipient), "user_name": .string(name)])
    }

    /// A notice about an account.
    public func notification(to recipient: String, title: String, body: String) async throws -> UUID {
        try await doors.act(
            "mail_account_notification",
            ["recipient": .string(recipient), "title": .string(title), "body": .string(body)])
    }

    /// Sends a waiting mail at another time. False: it is too late.
    public func reschedule(_ mail: UUID, to at: Date) async throws -> Bool {
        try await doors.act("mail_reschedule", ["id": AppValue(mail), "at": AppValue(at)])
    }
}

/// A mail to be sent: its own words, or a template and what is filled in.
public struct OutgoingMail: Sendable, Hashable {
    /// Names it for ever.
    public var id = UUID()
    /// Mail addresses.
    public var recipients: [String]
    /// Its subject.
    public var subject: String?
    /// As plain text.
    public var text: String?
    /// As a page.
    public var html: String?
    /// The name of a template.
    public var template: String?
    /// What is filled in.
    public var data: [String: AppValue] = [:]
    /// The language of the template.
    public var locale: String?
    /// When; nil: now.
    public var at: Date?

    /// In its own words.
    public init(to recipients: [String], subject: String, text: String) {
        (self.recipients, self.subject, self.text) = (recipients, subject, text)
    }

    /// By a template.
    public init(to recipients: [String], template: String, data: [String: AppValue] = [:]) {
        (self.recipients, self.template, self.data) = (recipients, template, data)
    }
}
