public import FoundationEssentials
import MillraceQueues
import Postgres

extension Client {
    /// The questions that jobs ask and nobody has answered, oldest first. For workers, operators and a tenant's own back end.
    public func approvals(limit: Int = 100) async throws(QueueError) -> [OpenApproval] {
        try await using { connection throws(PostgresError) in
            try await Queue.approvals(onlyOpen: true, page: limit, on: connection)
        }.map(OpenApproval.init)
    }

    /// Answers a question, once. Another answer later is refused.
    /// - Parameters:
    ///   - id: The question's.
    ///   - by: Who says so, for the audit; nil: the login's own name.
    /// - Returns: False if it was answered so already.
    @discardableResult
    public func answer(
        _ id: String, approved: Bool, by: String? = nil, comment: String? = nil
    ) async throws(QueueError) -> Bool {
        try await using { connection throws(PostgresError) in
            try await Queue.answer(id, approved: approved, by: by, comment: comment, on: connection)
        }
    }
}

/// A question of a job to a person, which waits for its answer.
public struct OpenApproval: Sendable {
    /// Names it in ``Client/answer(_:approved:by:comment:)`` and in `millrace approvals answer`.
    public let id: String
    /// The job that asks.
    public let job: Int64
    /// The step that waits.
    public let step: String
    /// The tenant of the job.
    public let tenant: String?
    /// When it was asked.
    public let askedAt: Date
    /// When the job goes on without an answer; nil: never.
    public let due: Date?
    private let json: [UInt8]

    init(_ row: ApprovalRow) {
        id = row.id
        job = row.job
        step = row.step
        tenant = row.tenant
        askedAt = row.askedAt
        due = row.due
        json = row.request
    }

    /// What it is about. Throws the error of `JSONDecoder` when it is something else.
    public func request<Value: Decodable>(as type: Value.Type) throws -> Value {
        try JSONDecoder().decode(type, from: Data(json))
    }
}
