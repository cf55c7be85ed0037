package import RoomKit
import RoomSchemas
import Workers

extension Room {
    /// Files that are made as jobs.
    /// - Parameter rendering: what renders templates in this worker; nil: another of its rooms does.
    package static func media(rendering: @escaping @Sendable (RoomContext) -> RoomParts?) -> Room {
        Room(
            RoomSchemas.media,
            nouns: ["media": "Make thumbnails and pictures without metadata, link to them, and delete them"],
            verbs: [.mediaProcess, .mediaList, .mediaShow, .mediaLink, .mediaDelete]
        ) { context in
            var parts = rendering(context) ?? RoomParts()
            guard let service = context.media() else { return parts }
            let pictures = Handler(kind: MediaService.kind, queue: MediaService.queue) { args, context in
                try await service.run(args, context)
            }
            parts.handlers.append(pictures)
            parts.bounds[MediaService.queue] = min(context.settings.slots, DocumentWiring.cores)
            return parts
        }
    }
}
