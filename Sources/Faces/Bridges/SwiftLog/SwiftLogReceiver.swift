#if SwiftLog
    public import Logging
    public import Millrace

    /// Sends a worker's log to a logger of swift-log. Levels keep their names; each value of the metadata is a string.
    ///
    /// ```swift
    /// let worker = Worker(log: .debug, logReceiver: SwiftLogReceiver(Logger(label: "jobs")))
    /// ```
    /// The worker drops what is below its own level, and the logger what is below its own.
    public struct SwiftLogReceiver: LogReceiver {
        private let logger: Logger

        /// Sends to this logger.
        public init(_ logger: Logger) {
            self.logger = logger
        }

        /// Writes one line. The time is the logger's own: it comes at once.
        public func log(_ event: WorkerLogLine) {
            let level: Logger.Level =
                switch event.level {
                case .debug: .debug
                case .info: .info
                case .warning: .warning
                case .error: .error
                }
            logger.log(
                level: level, "\(event.message)", metadata: event.metadata.mapValues { .string($0) }, source: "millrace"
            )
        }
    }
#endif
