public import FoundationEssentials
import Telemetry

/// Takes a worker's log, in place of stderr.
///
/// ```swift
/// struct Forwarding: LogHandler {
///     let logger: Logger
///     func log(_ event: LogEvent) {
///         logger.log(level: level(event.level), "\(event.message)", metadata: event.metadata.mapValues { "\($0)" })
///     }
/// }
/// let worker = Worker(database: .environment, logHandler: Forwarding(logger: logger))
/// ```
public protocol LogHandler: Sendable {
    /// Called on the thread that has something to say, and by many at once: it must not take long.
    func log(_ event: LogEvent)
}

/// Something that a worker has to say.
public struct LogEvent: Sendable, Equatable {
    /// How much it matters.
    public enum Level: String, Sendable, CaseIterable {
        /// Every run.
        case debug
        /// What an operator may want to know.
        case info
        /// Something that needs attention.
        case warning
        /// Something that failed for good.
        case error
    }

    /// When.
    public let at: Date
    /// How much it matters.
    public let level: Level
    /// Always the same words for the same thing.
    public let message: String
    /// The data of the message, such as `job.id`.
    public let metadata: [String: String]

    init(_ line: Log.Line) {
        at = line.at
        level =
            switch line.level {
            case .debug: .debug
            case .info: .info
            case .warning: .warning
            case .error: .error
            }
        message = line.message
        metadata = Dictionary(line.metadata.map { ($0.key, $0.value) }, uniquingKeysWith: { _, last in last })
    }
}
