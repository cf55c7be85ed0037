import Foundation

extension AppCalls {
    /// Where a file is put, and the name of what was put there.
    struct UploadLink: Codable, Sendable, Equatable {
        let url: URL
        let storageUrl: String
    }

    /// How much of a file the gateway has.
    struct UploadState: Decodable, Sendable, Equatable {
        var offset: Int
        var complete: Bool
    }

    /// Uploads it. The storage URL names it for what takes it over.
    func store(_ file: DocumentFile) async throws -> String {
        let link = try await link(for: file)
        try await put(file, to: link.url)
        return link.storageUrl
    }

    /// A link that takes this file once.
    func link(for file: DocumentFile) async throws -> UploadLink {
        try await act(
            "document_upload",
            ["name": .string(file.name), "mime_type": .string(file.mimeType), "size": .int(Int64(file.size))],
            as: OneRow<UploadLink>.self
        ).row
    }

    /// Sends what of it has not come yet: a small file as a whole, a large one piece by piece.
    func put(_ file: DocumentFile, to link: URL) async throws {
        guard isInPieces(file) else { return try await putWhole(file, to: link) }
        let state: UploadState
        do {
            state = try await came(by: link)
        } catch let error as AppError where error.status == 404 || error.status == 405 {
            return try await putWhole(file, to: link)  // a gateway of an earlier version
        }
        try await putPieces(file, to: link, from: state)
    }

    /// How often a piece is refused before the link is given up.
    private static let mostRefusals = 5

    /// Whether it is sent piece by piece.
    func isInPieces(_ file: DocumentFile) -> Bool { file.size > configuration.uploadPiece }

    private func putPieces(_ file: DocumentFile, to link: URL, from first: UploadState) async throws {
        var (state, refusals) = (first, 0)
        while !state.complete {
            let piece = try file.piece(at: state.offset, most: configuration.uploadPiece)
            do {
                state = try await append(piece, at: state.offset, to: link)
                refusals = 0
            } catch let error as AppError where error.errorClass == .conflict {
                // An answer was lost, or what an earlier connection brought has been kept only now.
                let now = try await came(by: link)
                if now != state {
                    (state, refusals) = (now, 0)
                    continue
                }
                // A request of an app that was killed has come after ours, and took the link. It has nobody who goes on with it.
                refusals += 1
                guard refusals < Self.mostRefusals else { throw error }
                try await pauses.sleep(configuration.retry.spread(refusals, random: pauses.random()))
            }
        }
    }

    private func came(by link: URL) async throws -> UploadState {
        var request = AppCalls.Request(name: "upload_state", url: link)
        request.credential = .none
        return try Self.decoded(try await send(request))
    }

    /// An empty one ends an upload of which all has come.
    func append(_ piece: Data, at offset: Int, to link: URL) async throws -> UploadState {
        var request = AppCalls.Request(name: "upload", method: "PATCH", url: link)
        request.headers["Content-Type"] = "application/offset+octet-stream"
        request.headers["Upload-Offset"] = "\(offset)"
        request.body = .data(piece)
        request.credential = .none
        let answer = try await send(request)
        guard let offset = answer.header("upload-offset").flatMap({ Int($0) }),
            let complete = answer.header("upload-complete")
        else { return try await came(by: link) }
        return UploadState(offset: offset, complete: complete == "?1")
    }

    /// The link takes the bytes once. If an answer was lost, the repeat is told that they are there: registering then shows whether they are.
    private func putWhole(_ file: DocumentFile, to link: URL) async throws {
        var request = AppCalls.Request(name: "upload", method: "PUT", url: link)
        request.headers["Content-Type"] = file.mimeType
        request.body =
            switch file.content {
            case .data(let data): .data(data)
            case .file(let file): .file(file)
            }
        request.credential = .none
        do {
            _ = try await send(request)
        } catch let error as AppError where error.errorClass == .conflict {
        }
    }
}

extension DocumentFile {
    /// Its bytes from there on, and no more than `most`.
    func piece(at offset: Int, most: Int) throws -> Data {
        let count = min(most, size - offset)
        guard offset >= 0, count > 0 else { return Data() }
        let piece: Data
        switch content {
        case .data(let data):
            let start = data.startIndex + offset
            piece = data.subdata(in: start..<start + count)
        case .file(let file):
            let handle = try FileHandle(forReadingFrom: file)
            defer { try? handle.close() }
            try handle.seek(toOffset: UInt64(offset))
            piece = try handle.read(upToCount: count) ?? Data()
        }
        guard piece.count == count else {
            throw AppError(.invalid, "the file \(name) has changed since it was handed in", field: "file")
        }
        return piece
    }
}
