public import Millrace

/// Welcomes somebody, and returns the number of the mail. In Strand: a workflow that runs an activity.
public struct Welcome: Workflow {
    /// The name its jobs are stored under.
    public static let kind = "person.welcome"
    /// The number of the mail.
    public typealias Result = String
    /// Whom.
    public var address: String

    /// A welcome.
    public init(address: String) {
        self.address = address
    }
}

/// The step is done once: when the worker dies after it, the next one gets what it gave.
public func workerOfWelcomes(
    on database: Database, mail: @escaping @Sendable (_ to: String, _ subject: String) async throws -> String
) -> Worker {
    let worker = Worker(database: database)
    worker.handle(workflow: Welcome.self) { welcome, context in
        try await context.step("mail") { try await mail(welcome.address, "Welcome!") }
    }
    return worker
}

/// Starts it under an id of our own, and waits for what it returns.
public func welcome(_ address: String, by client: Client) async throws -> String {
    let started = try await client.start(Welcome(address: address), id: "welcome-\(address)")
    return try await started.result(timeout: .seconds(30))
}
