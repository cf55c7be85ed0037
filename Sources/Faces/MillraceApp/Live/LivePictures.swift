import Foundation

struct LivePictures: PictureService {
    let context: LiveContext
    private var calls: AppCalls { context.calls }

    func upload(_ file: DocumentFile) async throws -> String {
        try await context.store(file)
    }

    func process(storageURL: String, _ options: PictureOptions) async throws -> UUID {
        var wish: [String: AppValue] = ["format": .string(options.format.rawValue)]
        if options.strip { wish["strip"] = true }
        if let bounds = options.thumbnail {
            let sides = ["width": AppValue(bounds.width), "height": AppValue(bounds.height)]
            wish["thumbnail"] = .object(sides.filter { $0.value != .null })
        }
        return try await calls.act(
            "media_process",
            ["storage_url": .string(storageURL), "options": .object(wish), "id": AppValue(options.id)])
    }

    func state(_ id: UUID) async throws -> PictureState {
        try await calls.ask("media", ["id": AppValue(id)], as: OneRow<PictureState>.self).row
    }

    func streamState(_ id: UUID) -> AsyncThrowingStream<PictureState, any Error> {
        context.events(.media).following(picture: id) { try await state($0) }
    }

    func link(_ id: UUID, _ kind: PictureFileKind) async throws -> URL {
        try await calls.ask("media_link", ["id": AppValue(id), "kind": .string(kind.rawValue)])
    }

    func keep(_ file: DocumentFile, as id: UUID) async throws -> UUID {
        try await calls.act(
            "media_keep",
            [
                "storage_url": .string(try await context.store(file)), "mime_type": .string(file.mimeType),
                "name": .string(file.name), "id": AppValue(id),
            ])
    }

    func delete(_ id: UUID) async throws {
        let _: Bool = try await calls.act("media_delete", ["id": AppValue(id)])
    }
}
