/// A job of the mail room, as a worker brings it.
package struct MailJob: Sendable {
    package var job: Int64
    package var kind: String
    package var args: [UInt8]
    /// Of the worker: who is gone when it is.
    package var session: Int64
    /// No further run may follow one that fails.
    package var isLast: Bool

    package init(job: Int64, kind: String, args: [UInt8], session: Int64, isLast: Bool) {
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
    /// Later, and no attempt of the job is used up.
    case later(Duration)
    /// Later, at the job's own pace.
    case retry(String)
    case dead(String)
}
