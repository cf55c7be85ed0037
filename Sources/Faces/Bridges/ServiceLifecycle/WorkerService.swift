#if ServiceLifecycle
    public import Millrace
    public import ServiceLifecycle

    /// A worker in a `ServiceGroup`.
    ///
    /// ```swift
    /// let group = ServiceGroup(
    ///     services: [server, WorkerService(worker)], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
    /// try await group.run()
    /// ```
    /// A graceful shutdown drains the worker: it stops claiming, hands back what has not started, and lets running jobs end within its
    /// drain timeout. Cancelling the group does the same. The signals are the group's: the worker does not listen for them.
    public struct WorkerService: Service {
        private let worker: Worker

        /// Runs this worker, once.
        public init(_ worker: Worker) {
            self.worker = worker
        }

        /// Until the worker is drained.
        public func run() async throws {
            try await withGracefulShutdownHandler {
                _ = try await worker.run(handlesSignals: false)
            } onGracefulShutdown: {
                worker.drain()
            }
        }
    }
#endif
