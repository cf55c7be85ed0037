package import Traces

/// A mail job, as a worker passes it on.
package struct MailJob: Sendable {
    package var job: Int64
    package var kind: String
    package var args: [UInt8]
    /// The worker's session: a request is free again when its session is gone.
    package var session: Int64
    /// If this run fails there is no further one.
    package var isLast: Bool
    /// The run's place in its trace; nil: it has none.
    package var trace: TraceContext?

    package init(
        job: Int64, kind: String, args: [UInt8], session: Int64, isLast: Bool, trace: TraceContext? = nil
    ) {
        self.trace = trace
        self.job = job
        self.kind = kind
        self.args = args
        self.session = session
        self.isLast = isLast
    }
}

/// How a mail job ended, as the worker records it.
package enum MailJobEnd: Sendable, Equatable {
    case done
    /// Later, without using up an attempt of the job.
    case later(Duration)
    /// Later, after the job's own backoff.
    case retry(String)
    case dead(String)
}
