package import JSON
import MillraceQueues
import Postgres

/// What a room says of itself.
package struct RoomPart: Sendable {
    package let room: String
    package let status: RoomStatus
    /// nil: the room is not installed.
    package let state: Section<RoomState?>

    /// Its name in the JSON's list of what cannot be told.
    package var name: String { status.key ?? "added_rooms.\(room)" }
}

extension StatusReport {
    mutating func readParts(of rooms: [Room], on connection: Connection, patience: Duration) async {
        // nil: who asks may not know; each room is asked as if it were there.
        let installed = try? await Queue.installedRooms(on: connection)
        for room in rooms {
            guard let status = room.status else { continue }
            guard installed == nil || installed?[room.name] != nil else {
                parts.append(RoomPart(room: room.name, status: status, state: .known(nil)))
                continue
            }
            let state = await Self.section { () throws(PostgresError) in
                try await status.read(connection, patience)
            }
            switch state {
            case .known(let state): parts.append(RoomPart(room: room.name, status: status, state: .known(state)))
            case .unavailable(let reason):
                parts.append(RoomPart(room: room.name, status: status, state: .unavailable(reason)))
            }
        }
    }

    /// The members of the JSON that are the rooms', with one for all rooms of other packages.
    package var roomMembers: [JSONValue.Member] {
        func json(_ part: RoomPart) -> JSONValue { (part.state.value ?? nil)?.json ?? .null }
        let own = parts.compactMap { part in
            part.status.key.map { JSONValue.Member(key: $0, value: json(part)) }
        }
        let added = parts.filter { $0.status.key == nil && $0.state.value.map { $0 != nil } ?? true }
        return own + [
            JSONValue.Member(key: "added_rooms", value: .object(added.map { .init(key: $0.room, value: json($0)) }))
        ]
    }
}
