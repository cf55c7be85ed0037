package import MillraceJobs
package import MillraceQueues

extension JobWorker {
    /// Who wants to know of every run, and how the worker is.
    package struct Observer: Sendable {
        /// A run has ended, after so long; nil: its lease was lost.
        package var ended: @Sendable (_ context: Context, _ outcome: Outcome?, _ duration: Duration) -> Void
        /// Told with every try of a beat.
        package var lives: @Sendable (_ health: Health) -> Void

        package init(
            ended: @escaping @Sendable (_ context: Context, _ outcome: Outcome?, _ duration: Duration) -> Void,
            lives: @escaping @Sendable (_ health: Health) -> Void
        ) {
            self.ended = ended
            self.lives = lives
        }
    }
}

extension JobWorker.Health {
    /// It takes jobs now.
    package var isReady: Bool { hasStarted && !isDraining && cutOff == nil && stall == nil }
}
