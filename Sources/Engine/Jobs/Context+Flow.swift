import FoundationEssentials

/// Jobs on their way from a run to the database, all of one kind.
package struct Spawned: Sendable {
    package var kind: String
    /// JSON texts.
    package var args: [[UInt8]]
    package var encrypted: Bool
    package var queue: String?
    package var priority: Int?
    /// A job of the same run that waits for them all.
    package var before: Int64?
    /// Of their arguments; 0: none.
    package var version = 0
}

/// What a predecessor of a job has left.
public struct Earlier<Value: Sendable>: Sendable {
    /// Its number.
    public let id: Int64
    /// False when it was cancelled or is dead.
    public let succeeded: Bool
    /// Its result, if it gave one.
    public let result: Value?
}

/// The same, not yet decoded.
package struct EarlierJob: Sendable {
    package var id: Int64
    package var succeeded: Bool
    package var result: [UInt8]?

    package init(id: Int64, succeeded: Bool, result: [UInt8]?) {
        self.id = id
        self.succeeded = succeeded
        self.result = result
    }
}

extension Context {
    /// How many spawned jobs go to the database at once.
    static let spawnPage = 1000

    /// Enqueues jobs that begin once this run has succeeded. If it does not succeed they are never enqueued, so a repeated run does not
    /// enqueue them twice. The sequence is read a thousand at a time, so it may be larger than memory.
    nonisolated(nonsending) public func spawn<Work: Job>(
        _ jobs: some Sequence<Work>, queue: String? = nil, priority: Int? = nil
    ) async throws {
        var iterator = jobs.makeIterator()
        try await spawn(before: nil, queue: queue, priority: priority) { iterator.next() }
    }

    /// The same, plus one job that waits until all of these have succeeded. Returns its number.
    @discardableResult
    nonisolated(nonsending) public func spawn<Work: Job, Next: Job>(
        _ jobs: some Sequence<Work>, queue: String? = nil, priority: Int? = nil, then next: Next,
        nextQueue: String? = nil
    ) async throws -> Int64 {
        var iterator = jobs.makeIterator()
        let last = try await spawn(next, queue: nextQueue)
        try await spawn(before: last, queue: queue, priority: priority) { iterator.next() }
        return last
    }

    /// The same for an asynchronous sequence of jobs, such as the rows of a query.
    @discardableResult
    nonisolated(nonsending) public func spawn<Jobs: AsyncSequence, Next: Job>(
        each jobs: Jobs, queue: String? = nil, priority: Int? = nil, then next: Next, nextQueue: String? = nil
    ) async throws -> Int64 where Jobs.Element: Job {
        var iterator = jobs.makeAsyncIterator()
        let last = try await spawn(next, queue: nextQueue)
        try await spawn(before: last, queue: queue, priority: priority) { try await iterator.next() }
        return last
    }

    /// Enqueues one job that begins once this run has succeeded. Returns its number.
    @discardableResult
    nonisolated(nonsending) public func spawn<Work: Job>(_ job: Work, queue: String? = nil) async throws -> Int64 {
        if undo != nil { return 0 }  // what an undo passes on its way makes no jobs
        return try await backend.spawn(
            self,
            Spawned(
                kind: Work.kind, args: [try Self.args(job)], encrypted: Work.encrypted, queue: queue, priority: nil,
                before: nil, version: Work.version))
    }

    nonisolated(nonsending) private func spawn<Work: Job>(
        before last: Int64?, queue: String?, priority: Int?, _ next: () async throws -> Work?
    ) async throws {
        if undo != nil { return }
        var page = Spawned(
            kind: Work.kind, args: [], encrypted: Work.encrypted, queue: queue, priority: priority, before: last,
            version: Work.version)
        while let job = try await next() {
            page.args.append(try Self.args(job))
            guard page.args.count == Self.spawnPage else { continue }
            try Task.checkCancellation()
            _ = try await backend.spawn(self, page)
            page.args.removeAll(keepingCapacity: true)
        }
        if !page.args.isEmpty { _ = try await backend.spawn(self, page) }
    }

    private static func args(_ job: some Job) throws -> [UInt8] {
        Array(try JSONEncoder().encode(job))
    }

    /// The jobs that this one waited for, by number, with their results. They are read as they are needed.
    public func earlier<Value: Decodable & Sendable>(as type: Value.Type) -> EarlierJobs<Value> {
        EarlierJobs(context: self)
    }
}

/// Jobs that another waited for, read a page at a time.
public struct EarlierJobs<Value: Decodable & Sendable>: AsyncSequence, Sendable {
    let context: Context

    /// Reads on when a page is used up.
    public struct Iterator: AsyncIteratorProtocol {
        let context: Context
        var page: ArraySlice<EarlierJob> = []
        var after: Int64 = 0
        var isLast = false

        /// The next one; nil at the end. A result that is no `Value` is an error.
        public mutating func next() async throws -> Earlier<Value>? {
            if page.isEmpty, !isLast {
                page = try await context.backend.earlier(context, after)[...]
                isLast = page.isEmpty
                after = page.last?.id ?? after
            }
            guard let one = page.popFirst() else { return nil }
            return Earlier(
                id: one.id, succeeded: one.succeeded,
                result: try one.result.map { try JSONDecoder().decode(Value.self, from: Data($0)) })
        }
    }

    /// From the first on.
    public func makeAsyncIterator() -> Iterator { Iterator(context: context) }
}
