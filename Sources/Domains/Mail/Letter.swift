package import Blobs
package import FoundationEssentials

/// A message as it was frozen before its first attempt: whatever is handed to a provider follows from it alone, so that a repeated
/// request has the bytes of the first.
package struct Letter: Sendable {
    package var id: UUID
    /// When the message was made: its Date header, whichever attempt this is.
    package var date: Date
    package var from: Mailbox
    package var to: [Mailbox]
    package var cc: [Mailbox] = []
    package var bcc: [Mailbox] = []
    package var replyTo: Mailbox?
    package var subject: String
    package var text: String?
    package var html: String?
    /// Beyond those that follow from the other fields; names and values are checked when the message is taken.
    package var headers: [Header] = []
    package var attachments: [Attachment] = []
    package var tags: [Tag] = []
    /// Set where an authentication service may do it with a mail of its own; nil for all that is said in our words alone, and when
    /// the token in it is that service's.
    package var purpose: Purpose?
    /// Somebody's safety may hang on it: no breaker, pace or bulkhead holds it back.
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

    /// Its content lies in the blob store; it is read piece by piece while it is sent, never held as a whole.
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
