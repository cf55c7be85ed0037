package import RoomKit

extension Room {
    /// Threads between people.
    package static let chat = Room(
        "chat",
        needs: ["blobs", "events", "people", "quotas", "notices", "ai", "quests", "checkins"],
        nouns: ["chat": "Look at threads and messages, send and delete them"],
        verbs: [
            .chatThreads, .chatMessages, .chatSearch, .chatBegin, .chatSend, .chatRead, .chatDelete, .chatRules,
        ])
}
