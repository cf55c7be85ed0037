import AI
import Chat
import CheckIns
import Documents
import Notices
import Quests
import Subscriptions
import Webhooks

/// The rooms of this program. A new one is a line here; it brings everything else itself.
package enum Rooms {
    /// In the order in which help lists their commands.
    package static let all: [Room] = [
        .webhooks, .mail, .templates, .quests, .chat, .lessons, .documents, .media, .checkIns,
        .notices(sender: { $0.text(.emailFromName) }), .subscriptions, .ai,
    ]
}

// The settings and the wiring of these stand here, and their commands with those of the core.
extension Room {
    static let mail = Room(
        "mail", needs: ["blobs", "events", "people", "templates"], settings: Setting.mail, judge: { $0.judgeMail() },
        nouns: ["mail": "Send mail, see what became of it, and who gets none"])

    static let templates = Room("templates", nouns: ["templates": "Write, check, publish and render mail templates"])

    static let documents = Room(
        "documents", needs: ["blobs", "events", "people", "quotas", "ai"], settings: Setting.documents,
        nouns: ["documents": "Hand in documents, follow how they are read, search and fetch what came of it"])

    static let media = Room(
        "media", needs: ["blobs", "feed", "people", "quotas", "templates", "documents"],
        nouns: ["media": "Make thumbnails and pictures without metadata, link to them, and delete them"])
}
