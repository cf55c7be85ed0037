package import RoomKit
import RoomSchemas

extension Room {
    /// What people are told, by push, SMS and voice.
    /// - Parameter sender: the name by which people know the app; nil: none is set.
    package static func notices(sender: @escaping @Sendable (Settings) -> String?) -> Room {
        Room(
            RoomSchemas.notices, settings: Setting.notices,
            nouns: [
                "notices": "Look at what people are told, send them notices, and cancel them",
                "devices": "Look at the devices that get pushes, and remove one",
            ],
            verbs: [.noticesList, .noticesShow, .noticesSend, .noticesCancel, .devicesList, .devicesRemove],
            status: .notices
        ) { context in
            guard context.settings.isOn(.noticesOn) else { return RoomParts() }
            let service = try context.notices(sender: sender(context.settings))
            return RoomParts(
                run: { await service.run() }, gauges: { await service.standing.gauges }, serves: ["notices": "on"])
        }
    }
}
