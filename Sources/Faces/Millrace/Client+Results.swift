public import FoundationEssentials
public import MillraceJobs
import MillraceQueues
import Postgres

extension Client {
    /// A job's result; nil when it has none, or none yet.
    public func result<Value: Decodable>(of id: Int64, as type: Value.Type) async throws(QueueError) -> Value? {
        let found = try await using { connection throws(PostgresError) in
            try await Queue.result(of: id, on: connection)
        }
        guard let found else { throw QueueError(.notFound, "There is no job \(id).") }
        guard let json = found.result else { return nil }
        do {
            return try JSONDecoder().decode(type, from: Data(json))
        } catch {
            throw QueueError(.invalid, "The result of job \(id) is not a \(type).")
        }
    }

    /// Waits until a job has succeeded, and returns its result. One that was cancelled or died is an error, and so is one that gave
    /// no result.
    public func wait<Value: Decodable>(
        for id: Int64, as type: Value.Type, timeout: Duration = .seconds(60)
    ) async throws(QueueError) -> Value {
        let status = try await wait(for: id, timeout: timeout)
        guard status.state == .succeeded else {
            let why = status.errors.last.map { ": \($0)" } ?? "."
            throw QueueError(.died, "Job \(id) was not done, it is \(status.state.rawValue)\(why)")
        }
        guard let value = try await result(of: id, as: type) else {
            throw QueueError(.notFound, "Job \(id) gave no result.")
        }
        return value
    }

    /// The lines that a job's runs have logged and that are kept: the newest 200. For workers and admins.
    public func log(of id: Int64) async throws(QueueError) -> [KeptLine] {
        try await using { connection throws(PostgresError) in try await Queue.logs(of: id, on: connection) }
            .map(KeptLine.init)
    }
}

/// A line of a job's log, as it is kept.
public struct KeptLine: Sendable, Equatable {
    /// Counted from 1 for each job; lines missing at the beginning were cut.
    public let number: Int64
    /// When it was logged.
    public let at: Date
    /// Which run said it.
    public let attempt: Int
    /// The line itself.
    public let line: LogLine

    init(_ row: LogRow) {
        number = row.number
        at = row.at
        attempt = row.attempt
        line = LogLine(row.text, LogLine.Level(rawValue: row.level) ?? .info)
    }
}
