package import MillraceQueues
import RoomSchemas

extension Migrator {
    /// A schema with every room.
    package static func ofAllRooms(roles: [(role: String, name: String)] = [], testClock: Bool = false) -> Migrator {
        Migrator(
            rooms: RoomSchemas.all, adoption: RoomSchemas.adoption, adding: RoomSchemas.names, roles: roles,
            testClock: testClock)
    }
}
