import Foundation

/// Files that are uploaded when there is a network. They need the sign-in: a device's token is good for operations only.
extension OfflineQueue {
    /// How many files may wait.
    public static let mostUploads = 100

    /// Keeps the file on disk, and uploads and registers it at once if that is possible.
    func submit(_ file: DocumentFile, _ details: DocumentDetails) async throws -> Submission<UUID> {
        let operation = QueuedOperation.upload(of: file, details, at: sync.calls.pauses.now())
        if let known = pending.first(where: { $0.id == details.id }) {
            guard known.isUpload, known.args == operation.args else {
                throw AppError(
                    .conflict, "a file for this document is already waiting with different details", field: "id",
                    hint: "Give another document another id.")
            }
            return try await submit(known)  // the file that waits is the one that is sent
        }
        let count = pending.count(where: \.isUpload)
        guard count < Self.mostUploads else {
            throw AppError(
                .quota, "\(count) files are already waiting",
                userMessage: "Too many files wait to be sent from this device.",
                quota: QuotaError(limit: Self.mostUploads, used: count, resetDate: nil))
        }
        try await files.keep(file, as: details.id)
        return try await submit(operation)
    }

    /// Uploads what waits, one after the other; one that cannot be sent now does not hold back the others. Throws what happened to the last of these.
    func uploadAll() async throws -> Int {
        var (ended, trouble) = (0, AppError?.none)
        for operation in pending where operation.isUpload && !isSaving(operation.id) {
            do {
                try await settle([try await upload(operation)])
                try await files.remove(operation.id)
                ended += 1
            } catch let error as AppError {
                trouble = error
                // Nobody is reached: neither will the next one be.
                if error.isBarred || error.errorClass == .unavailable { break }
            }
        }
        if let trouble { throw trouble }
        return ended
    }

    private func upload(_ operation: QueuedOperation) async throws -> OperationOutcome {
        let (calls, id) = (sync.calls, operation.id)
        do {
            // Done before, and the answer was lost.
            let known: [Document] = try await calls.ask("document", ["id": AppValue(id)])
            if !known.isEmpty { return OperationOutcome(operation, .same, result: AppValue(id)) }
            guard
                let file = try? DocumentFile(
                    contentsOf: files.url(id),
                    mimeType: operation.args["mime_type"]?.string ?? "application/octet-stream",
                    name: operation.args["file_name"]?.string)
            else { throw AppError(.internal, "the file of the document \(id) is not on this device any more") }
            var args = operation.args
            args["file_name"] = nil
            args["storage_url"] = .string(try await store(file, of: id))
            let made: UUID = try await calls.act("document_register", args)
            return OperationOutcome(operation, .applied, result: AppValue(made))
        } catch let error as AppError where error.endsAnUpload {
            return OperationOutcome(operation, .refused, error: error)
        }
    }

    /// Goes on behind what has come of it before, also by an app that was killed since.
    private func store(_ file: DocumentFile, of id: UUID) async throws -> String {
        let calls = sync.calls
        if let link = await files.link(of: id) {
            do {
                try await calls.put(file, to: link.url)
                return link.storageUrl
            } catch let error as AppError where error.endsALink {
                try await files.forgetLink(of: id)
            }
        }
        let link = try await calls.link(for: file)
        if calls.isInPieces(file) { try await files.keep(link, of: id) }
        try await calls.put(file, to: link.url)
        return link.storageUrl
    }
}

extension QueuedOperation {
    /// What the queue itself does, beside the gateway's operations.
    static let upload = "upload"
    var isUpload: Bool { op == Self.upload }

    /// A file may be given twice; what is done at another time is something else.
    func isSame(as other: QueuedOperation) -> Bool {
        self == other || isUpload && other.isUpload && id == other.id && args == other.args
    }

    static func upload(of file: DocumentFile, _ details: DocumentDetails, at: Date) -> QueuedOperation {
        var args = details.arguments("").filter { $0.key != "storage_url" && $0.value != .null }
        args["file_name"] = .string(file.name)
        return QueuedOperation(upload, args, at: at, id: details.id)
    }
}

extension AppError {
    /// Another link may do: this one is over, is used, or has come in too many parts.
    fileprivate var endsALink: Bool { [.not_found, .conflict, .too_large].contains(errorClass) }

    /// Another attempt would be refused as well. What something on the way has said does not count; only our own servers say these classes.
    fileprivate var endsAnUpload: Bool {
        switch errorClass {
        case .invalid, .too_large, .unsupported, .not_found, .internal: true
        case .conflict, .permission, .quota: isFromGateway
        case .transient, .timeout, .unavailable, .throttled, .authentication, .unknown, .cancelled: false
        }
    }
}
