import AI
import Chat
import CheckIns
import Console
import Documents
import Gateway
import Mail
import Notices
import People
import Quests
import RoomSchemas
package import Schema
import Subscriptions
import Webhooks

/// The rooms of this program. A new one is a line here; it brings everything else itself.
package enum Rooms {
    /// In the order in which help lists their commands.
    package static let all: [Room] = [
        .blobs, .events, .people, .quotas, .feed,
        .webhooks, .mail(files: { $0.templateFiles }), .templates, .quests, .chat, .lessons, .documents,
        .media(rendering: { $0.serves("mail") ? nil : $0.rendering(files: $0.templateFiles) }),
        .checkIns(host: { $0.settings.pageHost }),
        .notices(sender: { $0.text(.emailFromName) }), .subscriptions, .ai,
        .gateway, .console,
    ]

    /// Those of this program, and those that another package brings.
    package static func with(_ more: [Room]) throws(Failure) -> [Room] {
        var rooms = all
        for room in more.sorted(by: { $0.name < $1.name }) {
            guard room.schema.isFromOutside else { continue }
            guard !rooms.contains(room) else {
                throw Failure(.misused, "there is a room \(room.name) already", hint: "give yours another name")
            }
            try room.checkSettings()
            rooms.append(room)
        }
        return rooms
    }

    /// One of this program's; a name that it has not is our own mistake.
    package static func named(_ name: String) -> Room {
        guard let room = all.first(where: { $0.name == name }) else {
            preconditionFailure("there is no room \(name)")
        }
        return room
    }
}

extension [Room] {
    /// What the migrator is given: each behind those that it needs.
    package var schemas: [RoomSchema] {
        var sorted = RoomSchemas.all.filter { schema in contains { $0.name == schema.name } }
        var added = map(\.schema).filter(\.isFromOutside)
        while let next = added.firstIndex(where: { schema in
            schema.needs.allSatisfy { need in sorted.contains { $0.name == need } }
        }) {
            sorted.append(added.remove(at: next))
        }
        return sorted + added  // the migrator says what is missing for the rest
    }
}

// These have tables and functions that others use.
extension Room {
    static let blobs = Room(RoomSchemas.blobs)
    static let events = Room(RoomSchemas.events)
    static let quotas = Room(RoomSchemas.quotas)
    static let feed = Room(RoomSchemas.feed)
    static let gateway = Room(
        RoomSchemas.gateway, settings: Setting.gateway + Setting.gatewayTokens, status: .gateways)
    static let console = Room(RoomSchemas.console, settings: Setting.console)
}

extension RoomContext {
    /// Files of rendered templates are made by the room of media, if this worker serves it.
    fileprivate var templateFiles: TemplateFiles? { serves("media") ? media()?.templateFiles : nil }
}
