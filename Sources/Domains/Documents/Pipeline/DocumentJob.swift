import Jobs

/// A job of ours: which document, and what it is told by.
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

    /// What fails for want of something else than the document is tried again until here.
    var isLast: Bool { context.attempt >= context.maxAttempts }
}
