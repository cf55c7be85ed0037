package import RoomKit
import RoomSchemas

extension Room {
    /// Threads between people.
    package static let chat = Room(
        RoomSchemas.chat,
        nouns: ["chat": "Look at threads and messages, send and delete them"],
        verbs: [
            .chatThreads, .chatMessages, .chatSearch, .chatBegin, .chatSend, .chatRead, .chatDelete, .chatRules,
        ])
}
