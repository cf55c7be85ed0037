import Foundation

/// Files that wait to be uploaded, each by the id of its document. A file is whole under its name, or not there.
///
/// They are written on a queue of their own: a check-in must not wait for a large file.
struct UploadFiles: Sendable {
    private let directory: URL
    private let turn = DispatchQueue(label: "millrace.uploads")

    init(_ directory: URL) { self.directory = directory.appendingPathComponent("uploads") }

    func url(_ id: UUID) -> URL { directory.appendingPathComponent(id.uuidString.lowercased()) }

    /// Returns when all of it is on the disk.
    func keep(_ file: DocumentFile, as id: UUID) async throws {
        try await onTurn {
            try FileCalls.makeDirectory(directory.path)
            let (path, fresh) = (url(id).path, url(id).path + ".new")
            unlink(fresh)
            try FileCalls.keep(file, at: fresh)
            try FileCalls.rename(fresh, path)
            try FileCalls.syncDirectory(directory.path)
        }
    }

    func remove(_ id: UUID) async throws {
        try await onTurn {
            unlink(linkPath(id))
            unlink(url(id).path)
        }
    }

    // MARK: the link by which a part of it has come

    private static let linkEnding = ".link"

    private func linkPath(_ id: UUID) -> String { url(id).path + Self.linkEnding }

    func keep(_ link: AppCalls.UploadLink, of id: UUID) async throws {
        let bytes = try AppJSON.encode(link)
        try await onTurn {
            let fresh = linkPath(id) + ".new"
            try FileCalls.keep(bytes, at: fresh)
            try FileCalls.rename(fresh, linkPath(id))
        }
    }

    /// nil: there is none, or it cannot be read; then the file is sent from its beginning.
    func link(of id: UUID) async -> AppCalls.UploadLink? {
        try? await onTurn {
            try AppJSON.decode(
                AppCalls.UploadLink.self, from: Data(contentsOf: URL(fileURLWithPath: linkPath(id))))
        }
    }

    func forgetLink(of id: UUID) async throws { try await onTurn { _ = unlink(linkPath(id)) } }

    /// Removes what a crash has left of files that nothing waits for.
    func sweep(keeping ids: Set<UUID>) async throws {
        try await onTurn {
            let names = Set(ids.map { $0.uuidString.lowercased() })
            guard access(directory.path, F_OK) == 0 else { return }
            for name in try FileManager.default.contentsOfDirectory(atPath: directory.path)
            where !names.contains(name.hasSuffix(Self.linkEnding) ? String(name.dropLast(5)) : name) {
                unlink(directory.appendingPathComponent(name).path)
            }
        }
    }

    private func onTurn<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            turn.async { continuation.resume(with: Result { try body() }) }
        }
    }
}
