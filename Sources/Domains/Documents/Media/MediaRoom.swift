package import RoomKit
import RoomSchemas
import Workers

extension Room {
    /// Files that are made as jobs.
    package static let media = Room(
        RoomSchemas.media,
        nouns: ["media": "Make thumbnails and pictures without metadata, link to them, and delete them"],
        verbs: [.mediaProcess, .mediaList, .mediaShow, .mediaLink, .mediaDelete]
    ) { context in
        guard let service = context.media() else { return RoomParts() }
        let pictures = Handler(kind: MediaService.kind, queue: MediaService.queue) { args, context in
            try await service.run(args, context)
        }
        return RoomParts(
            handlers: [pictures], bounds: [MediaService.queue: min(context.settings.slots, DocumentWiring.cores)])
    }
}
