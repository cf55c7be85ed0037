import Foundation

extension AppCalls {
    private struct UploadLink: Decodable {
        let url: URL
        let storageUrl: String
    }

    /// Uploads it. The storage URL names it for what takes it over.
    func store(_ file: DocumentFile) async throws -> String {
        let link: UploadLink = try await act(
            "document_upload",
            ["name": .string(file.name), "mime_type": .string(file.mimeType), "size": .int(Int64(file.size))],
            as: OneRow<UploadLink>.self
        ).row
        try await put(file, to: link.url)
        return link.storageUrl
    }

    /// The link takes the bytes once. If an answer was lost, the repeat is told that they are there: registering then shows whether they are.
    func put(_ file: DocumentFile, to link: URL) async throws {
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
