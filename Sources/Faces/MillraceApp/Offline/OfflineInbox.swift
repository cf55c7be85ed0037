public import Foundation

/// What an extension of an app hands to the app's queue: one that shares a picture, or answers a notice. It runs in a process of its own, and
/// the queue is open in the app. Give both the same directory, in a container that they share.
///
/// What was handed in is on the disk when the call returns, also if the app does not run. The queue takes it in when it is opened, before it
/// drains, and every few seconds while it runs.
public struct OfflineInbox: Sendable {
    /// How many operations may lie in it.
    public static let most = 1000

    /// Whose operations these are.
    public let person: String
    private let files: InboxFiles

    /// Throws where the directory holds what another person did.
    /// - Parameters:
    ///   - directory: the one of `AppClient.live(_:person:offline:deviceName:)`. It is made where there is none.
    ///   - person: the subject (`sub`) of the tokens of who is signed in.
    public init(directory: URL, person: String) async throws {
        self.person = person
        files = InboxFiles(directory)
        guard let owner = try await files.owner() else { return }
        guard owner == person else { throw OfflineQueue.belongsToAnother(directory) }
    }

    /// Returns when the operation is on the disk. The same one again changes nothing.
    public func add(_ operation: QueuedOperation) async throws {
        guard !operation.isUpload else {
            throw AppError(.invalid, "a file is handed in with its content", field: "op", hint: "Give the file itself.")
        }
        guard try AppJSON.encode(operation).count <= OfflineQueue.operationBytes else {
            throw AppError(
                .too_large, "the operation has more than \(OfflineQueue.operationBytes) bytes", field: "args")
        }
        try await files.hand(InboxFiles.Entry(person: person, operation: operation), nil)
    }

    /// Returns when the file is on the disk, with the id of its document.
    @discardableResult
    public func add(_ file: DocumentFile, _ details: DocumentDetails, at: Date = Date()) async throws -> UUID {
        let operation = QueuedOperation.upload(of: file, details, at: at)
        try await files.hand(InboxFiles.Entry(person: person, operation: operation), file)
        return operation.id
    }
}

/// The inbox on the disk: a directory for each operation, which has its name when it is whole.
///
/// They are read and written on a queue of their own, since that blocks.
struct InboxFiles: Sendable {
    struct Entry: Codable, Equatable {
        var person: String
        var operation: QueuedOperation
    }

    /// What is not whole, or is no longer needed.
    private enum Ending {
        static let new = ".new"
        static let done = ".done"
        static let damaged = ".damaged"
    }

    /// What a killed extension has left is removed when it is so old.
    private static let longestHandIn: TimeInterval = 3600

    private let directory: URL
    private let place: URL
    private let turn = DispatchQueue(label: "millrace.inbox")

    init(_ directory: URL) {
        (self.directory, place) = (directory, directory.appendingPathComponent("inbox"))
    }

    private func url(_ id: UUID) -> URL { place.appendingPathComponent(id.uuidString.lowercased()) }

    /// Whose directory it is; nil where no queue was ever open in it.
    func owner() async throws -> String? {
        try await onTurn {
            let device = directory.appendingPathComponent("device")
            guard access(device.path, F_OK) == 0 else { return nil }
            return try AppJSON.decode(OfflineQueue.Device.self, from: Data(contentsOf: device)).person
        }
    }

    func hand(_ entry: Entry, _ file: DocumentFile?) async throws {
        try await onTurn {
            try FileCalls.makeDirectory(directory.path)
            try FileCalls.makeDirectory(place.path)
            try FileCalls.syncDirectory(directory.path)
            let id = entry.operation.id
            if try isThere(entry) { return }
            guard try names().count < OfflineInbox.most else {
                throw AppError(
                    .quota, "\(OfflineInbox.most) operations already lie in the inbox",
                    userMessage: "Too much waits to be sent from this device.",
                    quota: QuotaError(limit: OfflineInbox.most, used: OfflineInbox.most, resetDate: nil))
            }
            // Two processes may hand in the same one at the same time.
            let fresh = place.appendingPathComponent(id.uuidString.lowercased() + ".\(UUID().uuidString)" + Ending.new)
            do {
                try FileCalls.makeDirectory(fresh.path)
                if let file { try FileCalls.keep(file, at: fresh.appendingPathComponent("file").path) }
                try FileCalls.keep(
                    try AppJSON.encode(entry), at: fresh.appendingPathComponent("operation").path)
                try FileCalls.syncDirectory(fresh.path)
                try FileCalls.rename(fresh.path, url(id).path)
                try FileCalls.syncDirectory(place.path)
            } catch {
                try? FileManager.default.removeItem(at: fresh)
                if try isThere(entry) { return }
                throw error
            }
        }
    }

    /// Throws where another operation with this id lies there.
    private func isThere(_ entry: Entry) throws -> Bool {
        guard let known = read(url(entry.operation.id)) else { return false }
        guard known.person == entry.person, known.operation.isSame(as: entry.operation) else {
            throw AppError(
                .conflict, "an operation with this id is already waiting with different content", field: "id",
                hint: "Give another operation another id.")
        }
        return true
    }

    /// Those that are whole, the oldest first. What a crash has left of others is removed.
    func entries() async throws -> [Entry] {
        try await onTurn {
            var found: [Entry] = []
            for name in try names() {
                let one = place.appendingPathComponent(name)
                if name.hasSuffix(Ending.done) {
                    try? FileManager.default.removeItem(at: one)
                } else if name.hasSuffix(Ending.new) {
                    removeIfLeft(one)
                } else if name.hasSuffix(Ending.damaged) {
                    continue
                } else if let entry = read(one), name == entry.operation.id.uuidString.lowercased() {
                    found.append(entry)
                } else {
                    // A damaged disk has changed it; it is kept, for a look.
                    try FileCalls.rename(one.path, one.path + Ending.damaged)
                }
            }
            return found.sorted {
                ($0.operation.at, $0.operation.id.uuidString) < ($1.operation.at, $1.operation.id.uuidString)
            }
        }
    }

    private func removeIfLeft(_ one: URL) {
        let made = try? FileManager.default.attributesOfItem(atPath: one.path)[.modificationDate] as? Date
        guard let made, made.timeIntervalSinceNow < -Self.longestHandIn else { return }
        try? FileManager.default.removeItem(at: one)
    }

    /// Moves the file of an upload to where the queue keeps it. Nothing, if that was done before a crash.
    func moveFile(of id: UUID, to path: String) async throws {
        try await onTurn {
            let file = url(id).appendingPathComponent("file").path
            guard access(file, F_OK) == 0 else { return }
            let target = URL(fileURLWithPath: path).deletingLastPathComponent().path
            try FileCalls.makeDirectory(target)
            try FileCalls.rename(file, path)
            try FileCalls.syncDirectory(target)
        }
    }

    func remove(_ id: UUID) async throws {
        try await onTurn {
            guard access(url(id).path, F_OK) == 0 else { return }
            let done = url(id).path + ".\(UUID().uuidString)" + Ending.done
            try FileCalls.rename(url(id).path, done)
            try FileManager.default.removeItem(atPath: done)
        }
    }

    private func names() throws -> [String] {
        guard access(place.path, F_OK) == 0 else { return [] }
        return try FileManager.default.contentsOfDirectory(atPath: place.path)
    }

    private func read(_ one: URL) -> Entry? {
        guard let bytes = try? Data(contentsOf: one.appendingPathComponent("operation")) else { return nil }
        return try? AppJSON.decode(Entry.self, from: bytes)
    }

    private func onTurn<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            turn.async { continuation.resume(with: Result { try body() }) }
        }
    }
}
