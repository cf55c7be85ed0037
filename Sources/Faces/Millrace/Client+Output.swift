public import FoundationEssentials
import MillraceJobs
import MillraceQueues
import Postgres

extension Client {
    /// What a job's runs publish, from the beginning or from a number on: what is there, and then what comes. The sequence ends when the job has
    /// ended and everything was read. It waits through outages of the database.
    ///
    /// ```swift
    /// for try await row in millrace.stream(of: id, as: Row.self) { print(row.number, row.value) }
    /// ```
    /// - Parameters:
    ///   - id: The job, of the caller's own.
    ///   - type: What its values are; a value that is something else is an error.
    ///   - number: The first that is wanted. A reader that was interrupted goes on behind the last number that it saw.
    public func stream<Value: Decodable & Sendable>(
        of id: Int64, as type: Value.Type, from number: Int64 = 1
    ) -> JobStream<Value> {
        JobStream(client: self, id: id, first: number)
    }

    /// The state that a job's runs last gave; nil when they have given none.
    public func state<Value: Decodable>(of id: Int64, as type: Value.Type) async throws(QueueError) -> Value? {
        let found = try await using { connection throws(PostgresError) in
            try await Queue.output(of: id, on: connection)
        }
        guard let json = found?.state else { return nil }
        do {
            return try JSONDecoder().decode(type, from: Data(json))
        } catch {
            throw QueueError(.invalid, "The state of job \(id) is not a \(type).")
        }
    }
}

/// A value that a job has published.
public struct Published<Value: Sendable>: Sendable {
    /// Counted from 1 for each job, without gaps.
    public let number: Int64
    /// The value itself.
    public let value: Value
    /// The key that the handler gave it.
    public let key: String?
    /// The run that published it: after a failed run, values without a key come again from the next.
    public let attempt: Int
    /// When it was published.
    public let at: Date
}

/// The values of a job's stream, in their order, until the job has ended. A failure is a ``QueueError``; the next value may be asked for after it.
public struct JobStream<Value: Decodable & Sendable>: AsyncSequence, Sendable {
    /// Between two looks while nothing comes.
    static var pauses: ClosedRange<Duration> { .milliseconds(20) ... .milliseconds(500) }

    let client: Client
    let id: Int64
    let first: Int64

    /// Looks again and again: a notification for each value would make all commits of the database wait for each other.
    public struct Iterator: AsyncIteratorProtocol {
        let client: Client
        let id: Int64
        var after: Int64
        var page: ArraySlice<PublishedRow> = []
        var hasEnded = false

        /// The next value; nil when the job has ended and there is no more.
        public mutating func next() async throws -> Published<Value>? {
            var pause = JobStream.pauses.lowerBound
            while page.isEmpty, !hasEnded {
                let (isFinal, rows) = try await look()
                page = rows[...]
                hasEnded = isFinal && rows.isEmpty
                guard page.isEmpty, !hasEnded else { break }
                do {
                    try await Task.sleep(for: pause)
                } catch {
                    throw QueueError(.cancelled, "The reading of a stream was cancelled.")
                }
                pause = Swift.min(pause * 1.5, JobStream.pauses.upperBound)
            }
            guard let row = page.popFirst() else { return nil }
            after = row.number
            do {
                let value = try JSONDecoder().decode(Value.self, from: Data(row.value))
                return Published(number: row.number, value: value, key: row.key, attempt: row.attempt, at: row.at)
            } catch {
                throw QueueError(.invalid, "Value \(row.number) that job \(id) has published is not a \(Value.self).")
            }
        }

        /// The job's state first: what its runs have published is there before their end is.
        private func look() async throws(QueueError) -> (isFinal: Bool, rows: [PublishedRow]) {
            let (client, id, after) = (client, id, after)
            return try await RetryingLoop.value(
                pause: { (pause) throws(QueueError) in
                    do {
                        try await Task.sleep(for: pause)
                    } catch {
                        throw QueueError(.cancelled, "The reading of a stream was cancelled.")
                    }
                },
                of: { () async throws(QueueError) in
                    try await client.using { connection throws(PostgresError) in
                        let found = try await Queue.result(of: id, on: connection)
                        let rows = try await Queue.published(of: id, after: after, on: connection)
                        return (isFinal: found?.state.isFinal ?? false, rows: rows)
                    }
                },
                failed: { (error) throws(QueueError) in
                    guard error.errorClass == .unreachable else { throw error }
                    return true
                })
        }
    }

    /// From the sequence's first number on.
    public func makeAsyncIterator() -> Iterator { Iterator(client: client, id: id, after: Swift.max(first, 1) - 1) }
}
