package import MillraceJobs

/// What makes a handler one of chunks.
package struct ChunkOptions: Sendable {
    package var size: Int
    /// How long the first run of a chunk waits for company.
    package var waiting: Duration
    /// A worker's own gathering place, for chunks of no more jobs than it has slots.
    package var open: @Sendable (_ slots: Int) -> any ChunkRunning

    /// Asks the handler, and holds it to one verdict a job.
    static func verdicts<Work: Job>(
        _ items: [ChunkItem<Work>], _ body: @Sendable ([ChunkItem<Work>]) async throws -> [Verdict]
    ) async throws -> [Verdict] {
        let verdicts = try await body(items)
        guard verdicts.count == items.count else {
            throw WrongCount(kind: Work.kind, jobs: items.count, verdicts: verdicts.count)
        }
        return verdicts
    }

    /// Nobody can say which verdict is whose: none of them counts.
    struct WrongCount: Error, CustomStringConvertible {
        let kind: String
        let jobs: Int
        let verdicts: Int

        var description: String {
            "the handler of \(kind) was given a chunk of \(jobs) and returned \(verdicts) verdicts; it must return one for each, in order"
        }
    }
}

extension Handler {
    /// One that gets up to `size` jobs in one call. `body` is given a chunk of one where a job has to run alone.
    package init<Work: Job>(
        chunks size: Int, of type: Work.Type, queue: String? = nil, waiting: Duration,
        body: @escaping @Sendable ([ChunkItem<Work>]) async throws -> [Verdict]
    ) {
        self.init(type, queue: queue) { job, context in
            try await ChunkOptions.verdicts([ChunkItem(job: job, context: context)], body)[0]
        }
        chunks = ChunkOptions(size: max(1, size), waiting: max(.zero, waiting)) { slots in
            ChunkRunner(
                size: min(size, slots), waiting: max(.zero, waiting), decode: Handler.decoding(type), body: body)
        }
    }
}

extension Handler {
    /// One of chunks that reads the arguments itself: for rooms with several kinds of one shape.
    package init(
        plainChunks size: Int, kind: String, queue: String? = nil, waiting: Duration,
        body: @escaping @Sendable ([(args: [UInt8], context: Context)]) async throws -> [Verdict]
    ) {
        let whole: @Sendable ([ChunkItem<Plain>]) async throws -> [Verdict] = { items in
            try await body(items.map { ($0.job.args, $0.context) })
        }
        self.init(kind: kind, queue: queue) { args, context in
            try await ChunkOptions.verdicts([ChunkItem(job: Plain(args: args), context: context)], whole)[0]
        }
        chunks = ChunkOptions(size: max(1, size), waiting: max(.zero, waiting)) { slots in
            ChunkRunner(
                size: min(size, slots), waiting: max(.zero, waiting), decode: { Plain(args: $0) }, body: whole)
        }
    }

    private struct Plain: Job {
        static let kind = "of any kind"
        var args: [UInt8]
    }
}
