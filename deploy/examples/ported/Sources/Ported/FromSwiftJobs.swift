public import Millrace

/// A mail as a job. In swift-jobs: parameters with a job's name.
public struct SendMail: Job {
    /// The name its jobs are stored under.
    public static let kind = "mail.write"
    /// Who gets it.
    public var to: String
    /// What it is about.
    public var subject: String
    /// What it says.
    public var body: String

    /// A mail.
    public init(to: String, subject: String, body: String) {
        (self.to, self.subject, self.body) = (to, subject, body)
    }
}

/// What is done every Sunday at four.
public struct TidyUp: Job {
    /// The name its jobs are stored under.
    public static let kind = "database.tidy"

    /// Without arguments.
    public init() {}
}

/// What swift-jobs registers, and what its scheduler has. 64 of them run at the same time.
public func workerOfMails(
    on database: Database, send: @escaping @Sendable (SendMail) async throws -> Void,
    tidy: @escaping @Sendable () async throws -> Void
) throws -> Worker {
    let worker = Worker(database: database, slots: 64)
    worker.handle(SendMail.self) { mail, _ in
        try await send(mail)
        return .done
    }
    worker.handle(TidyUp.self) { _, _ in
        try await tidy()
        return .done
    }
    try worker.schedule("tidy-up", "0 4 * * 0", TidyUp())
    return worker
}
