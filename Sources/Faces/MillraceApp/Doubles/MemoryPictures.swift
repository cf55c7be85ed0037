import Foundation

/// It decodes nothing: the files of a picture are its bytes.
struct MemoryPictures: PictureService {
    let memory: MemoryContext

    func upload(_ file: DocumentFile) async throws -> String {
        let bytes = try file.bytes
        return try await memory.gateway.act("document_upload") { $0.store(bytes) }
    }

    func process(storageURL: String, _ options: PictureOptions) async throws -> UUID {
        try await memory.gateway.act("media_process") { try $0.process(storageURL, options, for: memory.person) }
    }

    func state(_ id: UUID) async throws -> PictureState {
        try await memory.gateway.ask("media") { try $0.picture(id, of: memory.person).state }
    }

    func streamState(_ id: UUID) -> AsyncThrowingStream<PictureState, any Error> {
        memory.gateway.changes(for: memory.person, [.media], since: nil).following(picture: id) { try await state($0) }
    }

    func link(_ id: UUID, _ kind: PictureFileKind) async throws -> URL {
        try await memory.gateway.ask("media_link") { state in
            guard try state.picture(id, of: memory.person).state.file(kind) != nil else {
                throw AppError(.conflict, "there is no file of this kind", field: "kind")
            }
            return URL(fileURLWithPath: "/memory/\(id.uuidString.lowercased())/\(kind.rawValue)")
        }
    }

    func keep(_ file: DocumentFile, as id: UUID) async throws -> UUID {
        let bytes = try file.bytes
        return try await memory.gateway.act("media_keep") { state in
            guard state.pictures[id] == nil else {
                throw AppError(.conflict, "media \(id) exist already", field: "id")
            }
            var kept = PictureState(id: id, status: .done)
            (kept.createdAt, kept.endedAt) = (state.now(), state.now())
            kept.files = [
                PictureState.File(
                    kind: "file", storageUrl: "blob:\(id.uuidString.lowercased())-file", size: bytes.count,
                    mimeType: file.mimeType)
            ]
            state.pictures[id] = MemoryState.StoredPicture(
                owner: memory.person, storageURL: state.store(bytes), options: PictureOptions(), size: bytes.count,
                state: kept)
            state.changed(.media, id.uuidString.lowercased(), "done", for: [memory.person], ["what": "file"])
            return id
        }
    }

    func delete(_ id: UUID) async throws {
        try await memory.gateway.act("media_delete") { state in
            _ = try state.picture(id, of: memory.person)
            state.pictures[id] = nil
            state.changed(.media, id.uuidString.lowercased(), "deleted", for: [memory.person], ["what": "picture"])
        }
    }
}

extension MemoryState {
    struct StoredPicture: Sendable {
        let owner: String
        let storageURL: String
        let options: PictureOptions
        let size: Int
        var state: PictureState
    }

    /// The name under which what is uploaded lies.
    mutating func store(_ bytes: Data) -> String {
        let address = "upload:\(UUID().uuidString.lowercased())"
        uploads[address] = bytes
        return address
    }

    func picture(_ id: UUID, of person: String) throws -> StoredPicture {
        guard let found = pictures[id], found.owner == person else {
            throw AppError(.not_found, "there are no such media", field: "id")
        }
        return found
    }

    mutating func process(_ address: String, _ options: PictureOptions, for person: String) throws -> UUID {
        if let bounds = options.thumbnail {
            let sides = [bounds.width, bounds.height].compactMap(\.self)
            guard !sides.isEmpty, sides.allSatisfy((1...4096).contains) else {
                throw AppError(.invalid, "give a width, a height, or both, of 1 to 4096", field: "options.thumbnail")
            }
        } else if !options.strip {
            throw AppError(.invalid, "options do not ask for anything", field: "options")
        }
        guard address.hasPrefix("blob:") || address.hasPrefix("upload:") else {
            throw AppError(.invalid, "the storage_url has an unknown form", field: "storage_url")
        }
        if let known = pictures[options.id] {
            guard known.owner == person, known.storageURL == address, known.options == options else {
                throw AppError(.conflict, "media \(options.id) already exist with different content", field: "id")
            }
            return options.id
        }
        guard let size = size(of: address, for: person) else {
            throw AppError(.not_found, "there is nothing under this storage_url", field: "storage_url")
        }
        var state = PictureState(id: options.id)
        state.createdAt = now()
        pictures[options.id] = StoredPicture(
            owner: person, storageURL: address, options: options, size: size, state: state)
        if makesPictures { try finish(picture: options.id, reason: nil) }
        return options.id
    }

    /// Of an upload, or of a file that was made for this person.
    private func size(of address: String, for person: String) -> Int? {
        if let upload = uploads[address] { return upload.count }
        return pictures.values.lazy.filter { $0.owner == person }.flatMap(\.state.files)
            .first { $0.storageUrl == address }?.size
    }

    mutating func finish(picture id: UUID, reason: String?) throws {
        guard var found = pictures[id], !found.state.hasEnded else {
            throw AppError(.conflict, "the files of \(id) are not being made", field: "id")
        }
        let kinds: [PictureFileKind] =
            (found.options.thumbnail == nil ? [] : [.thumbnail]) + (found.options.strip ? [.picture] : [])
        found.state.status = reason == nil ? .done : .failed
        found.state.reason = reason
        found.state.endedAt = now()
        if reason == nil {
            found.state.files = kinds.map { kind in
                PictureState.File(
                    kind: kind.rawValue, storageUrl: "blob:\(id.uuidString.lowercased())-\(kind.rawValue)",
                    size: found.size, mimeType: "image/\(found.options.format.rawValue)")
            }
        }
        pictures[id] = found
        var data: [String: AppValue] = ["what": "picture"]
        if let reason { data["reason"] = .string(reason) }
        changed(
            .media, id.uuidString.lowercased(), found.state.status.rawValue, for: [found.owner], .object(data))
    }
}
