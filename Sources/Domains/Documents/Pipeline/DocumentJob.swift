import MillraceJobs

/// A job of the document service: which document, and the context for its reports.
struct DocumentJob: Sendable {
    struct Args: Decodable {
        var document: String
        var round: Int32
        var page: Int32?
    }

    var document: String
    var round: Int32
    var page: Int32?
    var context: Context

    /// Failures that are not the document's fault are retried until this run.
    var isLast: Bool { context.attempt >= context.maxAttempts }
}
