package import Blobs
package import FoundationEssentials

/// A message as it was frozen before its first attempt. Everything that a provider gets is computed from it alone, so a repeated request
/// has the same bytes as the first.
package struct Letter: Sendable {
    package var id: UUID
    /// When the message was made: its Date header, the same for all attempts.
    package var date: Date
    package var from: Mailbox
    package var to: [Mailbox]
    package var cc: [Mailbox] = []
    package var bcc: [Mailbox] = []
    package var replyTo: Mailbox?
    package var subject: String
    package var text: String?
    package var html: String?
    /// Additional headers; names and values are checked when the message is enqueued.
    package var headers: [Header] = []
    package var attachments: [Attachment] = []
    package var tags: [Tag] = []
    /// Set when an authentication service may send a mail of its own instead. nil for all mail that needs our words, and when the token in
    /// the mail is that service's.
    package var purpose: Purpose?
    /// Somebody's safety may depend on it: no breaker, pace or bulkhead holds it back.
    package var isAlarm = false

    package init(id: UUID, date: Date, from: Mailbox, to: [Mailbox], subject: String) {
        self.id = id
        self.date = date
        self.from = from
        self.to = to
        self.subject = subject
    }

    package enum Purpose: String, Sendable {
        case passwordReset = "password_reset"
        case accountVerification = "account_verification"
    }

    package struct Header: Sendable, Hashable {
        package var name: String
        package var value: String
        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package struct Tag: Sendable, Hashable {
        package var name: String
        package var value: String
        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The content lies in the blob store. It is read piece by piece while it is sent, and never held as a whole.
    package struct Attachment: Sendable, Hashable {
        package var filename: String
        package var contentType: String
        /// Shown inside the HTML part instead of beside it.
        package var contentID: String?
        package var blob: BlobID
        package var size: Int

        package init(filename: String, contentType: String, contentID: String? = nil, blob: BlobID, size: Int) {
            self.filename = filename
            self.contentType = contentType
            self.contentID = contentID
            self.blob = blob
            self.size = size
        }
    }
}

extension Letter: CustomStringConvertible, CustomReflectable {
    package var description: String { "message \(id)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
