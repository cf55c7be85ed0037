/// How one of several databases is, in a line. It is read while somebody looks, at most every two seconds, and once for all who look.
package actor DatabaseGlance {
    package struct Reading: Sendable {
        package var word: String
        package var workers: Int?
        package var silent = 0
        package var ready: Int?
        /// Counting stopped there.
        package var isMore = false
        /// In seconds.
        package var oldest: Double?
        /// What cannot wait stands first.
        package var findings: [String]

        package init(word: String, findings: [String]) {
            self.word = word
            self.findings = findings
        }
    }

    /// Why a database cannot be read, in a sentence for who looks.
    package struct Unread: Error, Sendable {
        let sentence: String

        package init(sentence: String) { self.sentence = sentence }
    }

    package nonisolated let name: String
    private let read: @Sendable () async throws(Unread) -> Reading
    private var latest: (found: Result<Reading, Unread>, at: ContinuousClock.Instant)?
    private var reading: (task: Task<Result<Reading, Unread>, Never>, began: ContinuousClock.Instant)?
    private static let fresh = Duration.seconds(2)

    package init(name: String, read: @escaping @Sendable () async throws(Unread) -> Reading) {
        self.name = name
        self.read = read
    }

    /// Waits no longer than `limit`; what takes longer goes on, for those who look next.
    func now(within limit: Duration) async -> Result<Reading, Unread> {
        if let latest, latest.at.duration(to: .now) < Self.fresh { return latest.found }
        let (task, began) = reading ?? begin()
        if let found = await TimedAnswer.of(within: limit, { await task.value }) { return found }
        let waited = Figures.span(began.duration(to: .now) / .seconds(1))
        return .failure(Unread(sentence: "the database has not answered for \(waited)"))
    }

    private func begin() -> (task: Task<Result<Reading, Unread>, Never>, began: ContinuousClock.Instant) {
        // It ends by the deadlines of its connection, also when the page that began it has gone.
        let task = Task<Result<Reading, Unread>, Never> {
            let found: Result<Reading, Unread>
            do throws(Unread) {
                found = .success(try await read())
            } catch {
                found = .failure(error)
            }
            latest = (found, .now)
            reading = nil
            return found
        }
        let begun = (task, ContinuousClock.now)
        reading = begun
        return begun
    }
}

enum TimedAnswer {
    /// The answer, or nil when it takes longer than `limit`. What takes longer ends by a deadline of its own, and nobody hears its answer.
    static func of<Value: Sendable>(
        within limit: Duration, _ ask: @escaping @Sendable () async -> Value
    ) async -> Value? {
        let (answers, answering) = AsyncStream.makeStream(of: Value.self)
        let asking = Task {
            answering.yield(await ask())
            answering.finish()
        }
        let timer = Task {
            try await Task.sleep(for: limit)
            asking.cancel()
            answering.finish()
        }
        defer { timer.cancel() }
        for await answer in answers { return answer }
        return nil
    }
}
