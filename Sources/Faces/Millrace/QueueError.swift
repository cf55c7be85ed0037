import Encryption
import MillraceQueues
import Postgres
package import Workers

/// What went wrong between a caller and the queue.
public struct QueueError: Error, Sendable, CustomStringConvertible {
    /// The kinds of trouble a caller may want to tell apart.
    public enum Class: String, Sendable {
        /// The database cannot be reached, or gave no answer in time. Trying again can help.
        case unreachable
        /// The request is malformed.
        case invalid
        /// Too large, or over a quota.
        case tooLarge
        /// The role has no right to it.
        case forbidden
        /// There is no such job.
        case notFound
        /// A unique key is held by another job, or the job is in another state.
        case conflict
        /// The schema is missing, or does not fit this version.
        case schema
        /// The settings cannot be used.
        case misconfigured
        /// Anything else the database refused, or a ``Client/Middleware`` did.
        case refused
        /// The calling task was cancelled.
        case cancelled
        /// The wait was longer than allowed.
        case timedOut
        /// The job whose result was awaited was cancelled or died.
        case died
    }

    /// The class of the error.
    public let errorClass: Class
    /// A sentence that says what to do. Holds no arguments and no connection string.
    public let description: String
    /// The SQLSTATE, where the database gave one.
    public let sqlState: String?

    package init(_ errorClass: Class, _ description: String, sqlState: String? = nil) {
        self.errorClass = errorClass
        self.description = description
        self.sqlState = sqlState
    }

    init(_ error: PostgresError) {
        self.init(Self.classify(error), error.description, sqlState: error.sqlState)
    }

    package init(_ failure: Workers.JobWorker.Failure) {
        switch failure {
        case .schema: self.init(.schema, failure.description)
        case .database(let error): self.init(error)
        case .noHandlers: self.init(.misconfigured, failure.description)
        }
    }

    init(_ failure: Migrator.Failure) {
        switch failure {
        case .database(let error), .busy(let error):
            self.init(Self.classify(error), failure.description, sqlState: error.sqlState)
        case .newerSchema, .olderSchema, .schemaBeforeLines, .unknownRooms, .noSuchRoom, .notInstalled, .roomIsNeeded,
            .roomHasRows, .roomIsUsed, .nameIsTaken, .needIsMissing, .oldServer, .foreignSchema, .foreignObjects:
            self.init(.schema, failure.description)
        }
    }

    init(_ error: SealError) {
        self.init(.misconfigured, error.description)
    }

    private static func classify(_ error: PostgresError) -> Class {
        switch error {
        case .unreachable, .lost, .timedOut, .exhausted: return .unreachable
        case .cancelled: return .cancelled
        case .undecodable: return .schema
        case .misconfigured: return .misconfigured
        case .server(let server):
            switch server.sqlState {
            case "22023", "22P02", "22P05", "22007", "22008", "22021", "0A000": return .invalid
            case "53400": return .tooLarge
            case "42501": return .forbidden
            case "P0002": return .notFound
            case "23505", "55000": return .conflict
            case "3F000", "42883", "42P01": return .schema
            default: return error.isOutage ? .unreachable : .refused
            }
        }
    }
}
