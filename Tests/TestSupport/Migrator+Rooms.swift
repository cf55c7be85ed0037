import Foundation
package import MillraceQueues
import RoomSchemas
package import Schema

extension Template {
    /// With MILLRACE_TEST_ROOMS=core databases have the core alone, so that the engine's tests show that it needs no room. What is about rooms is left out.
    package static let hasRooms: Bool = {
        let said = ProcessInfo.processInfo.environment["MILLRACE_TEST_ROOMS"] ?? "all"
        precondition(["all", "core"].contains(said), "MILLRACE_TEST_ROOMS is all or core, not \(said)")
        return said == "all"
    }()

    /// Those of the databases of this run.
    package static let rooms = hasRooms ? RoomSchemas.all : []
}

extension Migrator {
    /// Makes what the databases of this run have: every room, or the core alone.
    package static func asTested(
        roles: [(role: String, name: String)] = [], testClock: Bool = false
    ) -> Migrator {
        Migrator(
            rooms: RoomSchemas.all, adoption: RoomSchemas.adoption, adding: Template.rooms.map(\.name), roles: roles,
            testClock: testClock)
    }

    /// Every room is installed.
    package static func ofAllRooms(
        roles: [(role: String, name: String)] = [], testClock: Bool = false
    ) -> Migrator {
        Migrator(
            rooms: RoomSchemas.all, adoption: RoomSchemas.adoption, adding: RoomSchemas.names, roles: roles,
            testClock: testClock)
    }
}
