public import FoundationEssentials
import Telemetry

/// Takes a worker's log, in place of stderr. The product `MillraceSwiftLog` has one for swift-log.
///
/// ```swift
/// struct Printing: LogReceiver {
///     func log(_ event: WorkerLogLine) {
///         print(event.level, event.message, event.metadata)
///     }
/// }
/// let worker = Worker(database: .environment, logReceiver: Printing())
/// ```
public protocol LogReceiver: Sendable {
    /// Called on the thread that has something to say, and by many at once: it must not take long.
    func log(_ event: WorkerLogLine)
}

/// Something that a worker has to say.
public struct WorkerLogLine: Sendable, Equatable {
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
