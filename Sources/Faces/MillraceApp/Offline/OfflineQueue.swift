import Foundation

/// What a person did while the gateway could not be reached, on disk until it has been told. Owns its directory.
///
/// An operation that was added survives a crash at any point. The queue is told in order, check-ins first, at most 500 at a time. It has a
/// device token of its own, so that it can be told when the sign-in is over. A directory belongs to one person and is open in one process; another
/// process hands in by `OfflineInbox`.
public actor OfflineQueue {
    /// How many operations may wait.
    public static let most = 10_000
    static let batch = 500
    static let batchBytes = 3 << 20
    static let operationBytes = 64 << 10
    /// How often it looks for what another process has handed in, while it runs and nothing waits.
    private static let pauseOfInbox = Duration.seconds(3)

    /// Whose operations these are.
    public nonisolated let person: String
    let log: OperationLog
    let sync: SyncCalls
    let files: UploadFiles
    private let inbox: InboxFiles
    let deviceName: String?
    var device: Device
    /// In the order of adding.
    private var waiting: [QueuedOperation]
    /// Those of them that are not on the disk yet.
    private var saving: Set<UUID> = []
    /// Lines that a damaged disk has changed, found when it was opened.
    public nonisolated let damaged: Int
    private var telling: Task<Report, any Error>?
    private var uploading: Task<Int, any Error>?
    private var takingIn: Task<Void, any Error>?
    private(set) var status = SyncStatus()
    private var told: SyncStatus?
    private var attempts = 0
    var watchers: [UUID: AsyncStream<SyncStatus>.Continuation] = [:]
    private var listeners: [UUID: AsyncStream<OperationOutcome>.Continuation] = [:]
    private var awaited: [UUID: OperationOutcome?] = [:]
    private var added: [CheckedContinuation<Void, Never>] = []

    struct Device: Codable, Equatable {
        var device: String
        var person: String
        var token: String?
    }

    /// What a drain has done.
    public struct Report: Sendable, Hashable {
        /// Operations that have ended, in one way or the other.
        public var ended = 0
        /// Operations that still wait: the gateway could not do them now.
        public var waiting = 0
    }

    /// Opens the directory, and makes it where there is none.
    init(directory: URL, person: String, calls: AppCalls, deviceName: String? = nil) async throws {
        let log = try OperationLog(directory: directory)
        let found = try await log.open()
        var device = Device(device: UUID().uuidString.lowercased(), person: person)
        if let bytes = try await log.stored("device"), let known = try? AppJSON.decode(Device.self, from: bytes) {
            guard known.person == person else { throw Self.belongsToAnother(directory) }
            device = known
        } else {
            try await log.store(try AppJSON.encode(device), as: "device")
        }
        (self.log, self.person, self.deviceName, self.device) = (log, person, deviceName, device)
        (waiting, damaged) = (found.pending, found.damaged)
        sync = SyncCalls(calls: calls)
        files = UploadFiles(directory)
        inbox = InboxFiles(directory)
        // A file of the inbox may have come here before a crash, and its operation not.
        if let handed = try? await inbox.entries().map(\.operation) {
            try await files.sweep(keeping: Set((found.pending + handed).filter(\.isUpload).map(\.id)))
            try? await takeIn()  // a drain says why not
        }
        tellStatus()
    }

    static func belongsToAnother(_ directory: URL) -> AppError {
        AppError(
            .conflict, "the directory \(directory.path) holds what another person did",
            hint: "Keep one directory for each person who signs in.")
    }

    /// What waits, in the order in which it will be told.
    public var pending: [QueuedOperation] { waiting.filter(\.isUrgent) + waiting.filter { !$0.isUrgent } }

    /// What becomes of operations, from now on. One that ended while nobody listened is not told again.
    public func outcomes() -> AsyncStream<OperationOutcome> {
        let id = UUID()
        let (stream, continuation) = AsyncStream<OperationOutcome>.makeStream(bufferingPolicy: .unbounded)
        listeners[id] = continuation
        continuation.onTermination = { [weak self] _ in Task { await self?.forget(id) } }
        return stream
    }

    /// Gives the directory back, for signing out or another process. What waits stays on disk.
    public func close() async {
        for listener in listeners.values { listener.finish() }
        for watcher in watchers.values { watcher.finish() }
        await log.close()
    }

    private func forget(_ listener: UUID) { listeners[listener] = nil }

    // MARK: adding

    /// Returns when the operation is on the disk. The same one again changes nothing.
    public func add(_ operation: QueuedOperation) async throws {
        if let known = waiting.first(where: { $0.id == operation.id }) {
            guard known.isSame(as: operation) else {
                throw AppError(
                    .conflict, "an operation with this id is already waiting with different content", field: "id",
                    hint: "Give another operation another id.")
            }
            return
        }
        guard waiting.count < Self.most else {
            throw AppError(
                .quota, "\(waiting.count) operations are already waiting",
                userMessage: "Too much waits to be sent from this device.",
                quota: QuotaError(limit: Self.most, used: waiting.count, resetDate: nil))
        }
        guard try AppJSON.encode(operation).count <= Self.operationBytes else {
            throw AppError(.too_large, "the operation has more than \(Self.operationBytes) bytes", field: "args")
        }
        // Before the write: a second call with this id must not write it again meanwhile.
        waiting.append(operation)
        saving.insert(operation.id)
        defer { saving.remove(operation.id) }
        do {
            try await log.append([.added(operation)])
        } catch {
            waiting.removeAll { $0.id == operation.id }
            throw error
        }
        tellStatus()
        wake()
    }

    /// Takes in what another process has handed in.
    private func takeIn() async throws {
        if let takingIn { return try await takingIn.value }
        let task = Task {
            defer { takingIn = nil }
            for entry in try await inbox.entries() where entry.person == person { try await takeIn(entry.operation) }
        }
        takingIn = task
        try await task.value
    }

    /// On the disk here before it is removed there. One that has ended since is told again, by its id, and changes nothing.
    private func takeIn(_ operation: QueuedOperation) async throws {
        guard waiting.count < Self.most else { return }
        if operation.isUpload, !waiting.contains(where: { $0.id == operation.id }) {
            guard waiting.count(where: \.isUpload) < Self.mostUploads else { return }
            try await inbox.moveFile(of: operation.id, to: files.url(operation.id).path)
        }
        do {
            try await add(operation)
        } catch let error as AppError where error.errorClass == .conflict {
            let outcome = OperationOutcome(operation, .conflict, error: error)
            for listener in listeners.values { listener.yield(outcome) }
        }
        try await inbox.remove(operation.id)
    }

    /// Adds the operation, and tells it at once if that is possible.
    func submit<Value: Decodable & Sendable>(
        _ operation: QueuedOperation, as type: Value.Type = Value.self
    ) async throws -> Submission<Value> {
        awaited.updateValue(nil, forKey: operation.id)
        defer { awaited.removeValue(forKey: operation.id) }
        try await add(operation)
        // A drain that runs already may have looked before this was added; the second one has not.
        for _ in 0..<2 where awaited[operation.id] == .some(nil) {
            do {
                if operation.isUpload { try await drain() } else { _ = try await tell() }
            } catch is AppError {
                break  // it is on the disk: another drain tells it
            }
        }
        guard let ended = awaited[operation.id] ?? nil else { return .queued(operation.id) }
        if let error = ended.error { throw error }
        if ended.isSuperseded { return .superseded }
        return .done(try AppJSON.decode(Value.self, from: ended.result ?? .null))
    }

    // MARK: telling

    /// Tells all that waits, in one attempt, and then uploads files. Throws when the gateway could not be reached; what waits then goes on waiting.
    @discardableResult
    public func drain() async throws -> Report {
        var trouble: (any Error)?
        do { try await takeIn() } catch { trouble = error }
        var report = try await tell()
        report.ended += try await sendFiles()
        report.waiting = waiting.count
        // What waits here does not wait for what cannot be read there.
        if let trouble { throw trouble }
        return report
    }

    /// Operations alone: nobody who checks in waits for a file.
    private func tell() async throws -> Report {
        if let telling { return try await telling.value }
        // A task of its own: all who wait share it, and one that stops waiting must not end it.
        let task = Task {
            defer { telling = nil }
            return try await attempt { try await tellAll() }
        }
        telling = task
        return try await task.value
    }

    private func sendFiles() async throws -> Int {
        if let uploading { return try await uploading.value }
        let task = Task {
            defer { uploading = nil }
            return try await attempt { try await uploadAll() }
        }
        uploading = task
        return try await task.value
    }

    /// Says in the status that it runs, and how it has ended.
    private func attempt<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        guard !waiting.isEmpty else { return try await body() }
        attempts += 1
        tellStatus()
        defer {
            attempts -= 1
            tellStatus()
        }
        do {
            let value = try await body()
            if waiting.isEmpty { (status.trouble, status.lastTold) = (nil, sync.calls.pauses.now()) }
            return value
        } catch {
            status.trouble = error as? AppError
            throw error
        }
    }

    private func tellStatus() {
        status.waiting = waiting.count
        status.urgent = waiting.count(where: \.isUrgent)
        status.uploads = waiting.count(where: \.isUpload)
        status.isTelling = attempts > 0
        guard status != told else { return }
        told = status
        for watcher in watchers.values { watcher.yield(status) }
    }

    /// Drains whenever something was added, and again after pauses that grow while that fails. A pause that the gateway asks for is kept. Ends
    /// when it is cancelled.
    public func run() async throws {
        var failures = 0
        while true {
            try Task.checkCancellation()
            var asked = Duration.zero
            do {
                if waiting.isEmpty { await untilAdded(atMost: Self.pauseOfInbox) }
                failures = try await drain().waiting == 0 ? 0 : failures + 1
            } catch let error as AppError {
                failures += 1
                asked = error.retryAfter ?? .zero
            }
            guard failures > 0 else { continue }
            let pauses = sync.calls.pauses
            try await pauses.sleep(max(asked, sync.calls.configuration.retry.spread(failures, random: pauses.random())))
        }
    }

    private func untilAdded(atMost pause: Duration) async {
        let waker = Task {
            try await Task.sleep(for: pause)
            wake()
        }
        defer { waker.cancel() }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled || !waiting.isEmpty { continuation.resume() } else { added.append(continuation) }
            }
        } onCancel: {
            Task { await self.wake() }
        }
    }

    private func wake() {
        let woken = added
        added = []
        for one in woken { one.resume() }
    }

    private func tellAll() async throws -> Report {
        var report = Report()
        var held: Set<UUID> = []
        var largest = Self.batch
        while true {
            let batch = nextBatch(largest, without: held)
            guard !batch.isEmpty else { break }
            let answers: [SyncCalls.Answer]
            do {
                answers = try await push(batch)
            } catch let error as AppError where error.errorClass == .throttled && batch.contains(where: \.isUrgent) {
                // There is no room for all of them now. A check-in does not wait for the others.
                let urgent = batch.filter(\.isUrgent)
                guard urgent.count < batch.count else { throw error }
                let outcomes = Self.outcomes(of: urgent, try await push(urgent))
                try await settle(outcomes)
                throw error
            } catch let error as AppError where error.kind == .invalidInput && error.isFromGateway {
                // One of them spoils the whole request: find it, so that it holds back no other.
                if batch.count > 1 {
                    largest = batch.count / 2
                } else {
                    try await settle([OperationOutcome(batch[0], .refused, error: error)])
                    report.ended += 1
                    largest = Self.batch
                }
                continue
            }
            let outcomes = Self.outcomes(of: batch, answers)
            // The gateway stops a push that takes long, and answers the rest as not now: that rest comes next, as long as something is done.
            if outcomes.isEmpty { held.formUnion(batch.map(\.id)) }
            try await settle(outcomes)
            report.ended += outcomes.count
        }
        report.waiting = waiting.count
        return report
    }

    func isSaving(_ id: UUID) -> Bool { saving.contains(id) }

    /// What has ended; the others are to be told again.
    private static func outcomes(of batch: [QueuedOperation], _ answers: [SyncCalls.Answer]) -> [OperationOutcome] {
        let byID = Dictionary(answers.map { ($0.id, $0) }) { first, _ in first }
        return batch.compactMap { operation in
            guard let answer = byID[operation.id], let word = OperationOutcome.Word(rawValue: answer.outcome),
                answer.error?.mayRetry != true, answer.error?.errorClass != .throttled
            else { return nil }
            return OperationOutcome(operation, word, error: answer.error, result: answer.result)
        }
    }

    private func nextBatch(_ most: Int, without held: Set<UUID>) -> [QueuedOperation] {
        var (batch, bytes) = ([QueuedOperation](), 0)
        let ready = pending.filter { !$0.isUpload && !held.contains($0.id) && !saving.contains($0.id) }
        for operation in ready {
            bytes += (try? AppJSON.encode(operation).count) ?? 0
            if batch.count == most || (bytes > Self.batchBytes && !batch.isEmpty) { break }
            batch.append(operation)
        }
        return batch
    }

    /// They have ended: on the disk first, then for all who wait.
    func settle(_ outcomes: [OperationOutcome]) async throws {
        guard !outcomes.isEmpty else { return }
        try await log.append(outcomes.map { .ended($0.operation.id) })
        let ids = Set(outcomes.map(\.operation.id))
        waiting.removeAll { ids.contains($0.id) }
        tellStatus()
        for outcome in outcomes {
            if awaited.keys.contains(outcome.operation.id) { awaited[outcome.operation.id] = outcome }
            for listener in listeners.values { listener.yield(outcome) }
        }
    }
}
