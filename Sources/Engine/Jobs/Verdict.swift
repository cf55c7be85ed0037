/// A handler's verdict on its run. Exactly one verdict ends a run; a thrown error is a retry, unless it says otherwise.
public enum Verdict: Sendable, Equatable {
    /// The work is done.
    case done
    /// The work is done, and the handler's own transaction has recorded it: it called `millrace.complete` with ``Context/token`` and
    /// committed. If the database does not know of it, the run counts as failed.
    case recorded
    /// It failed and should be tried again; nil leaves the pause to the kind's policy. Uses up an attempt.
    case retry(after: Duration? = nil, reason: String = "the handler asked for a retry")
    /// Not yet: run again later, without using up an attempt.
    case snooze(for: Duration)
    /// It can never succeed: the job is dead, with this reason.
    case discard(String)
    /// The run has ended at this step, and its job waits there; a later run goes on. Middleware gets it. Handlers do not return it: they
    /// let ``RunHasEnded`` pass.
    case waiting(step: String)
}

/// Whether trying again can help.
public enum Retry: Sendable, Equatable {
    /// It cannot.
    case never
    /// It can, after the kind's usual pause.
    case usual
    /// It can, after this long.
    case after(Duration)
}

/// An error that knows whether trying again can help. Any other error is retried as usual.
public protocol JobFailure: Error {
    /// Whether trying again can help.
    var retry: Retry { get }
}
