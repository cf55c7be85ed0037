package import RoomKit

extension Room {
    /// What documents belong to.
    package static let lessons = Room(
        "lessons", needs: ["feed", "people", "events", "quotas", "documents"],
        nouns: ["lessons": "Make lessons, see how their documents stand, and delete both"],
        verbs: [.lessonsList, .lessonsShow, .lessonsPut, .lessonsDelete])
}
