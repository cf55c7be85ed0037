package import RoomKit
import RoomSchemas

extension Room {
    /// What documents belong to.
    package static let lessons = Room(
        RoomSchemas.lessons,
        nouns: ["lessons": "Make lessons, see how their documents stand, and delete both"],
        verbs: [.lessonsList, .lessonsShow, .lessonsPut, .lessonsDelete])
}
