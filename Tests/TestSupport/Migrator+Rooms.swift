package import Queues
import RoomSchemas

extension Migrator {
    /// What most tests want: every room is installed.
    package static func ofAllRooms(
        roles: [(role: String, name: String)] = [], testClock: Bool = false
    ) -> Migrator {
        Migrator(
            rooms: RoomSchemas.all, adoption: RoomSchemas.adoption, adding: RoomSchemas.names, roles: roles,
            testClock: testClock)
    }
}
