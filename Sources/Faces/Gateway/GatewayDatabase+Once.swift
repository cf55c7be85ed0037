package import Postgres

extension GatewayDatabase {
    /// What a request with an idempotency key came to.
    package struct OnceAnswer: Sendable, Equatable {
        package var status: Int
        package var body: String
        /// An earlier request with this key did it.
        package var isReplayed: Bool
    }

    /// Runs the statements once for this key: the answer is stored in the same transaction, so it is kept exactly when the effect is. A
    /// second request with the key gets the answer of the first; while another process has it, this one tries again.
    /// - Parameter request: what the request asks for; another one with the same key is refused.
    /// - Parameter answer: the body, from the one text that each statement gives.
    package func once(
        _ key: String, request: [UInt8], _ statements: [Statement], as caller: GatewayCaller,
        deadline: Duration = Self.patience, answer: @escaping @Sendable ([String]) -> String
    ) async throws -> OnceAnswer {
        try await untilFree {
            try await onceNow(key, request: request, statements, as: caller, deadline: deadline, answer: answer)
        }
    }

    private func onceNow(
        _ key: String, request: [UInt8], _ statements: [Statement], as caller: GatewayCaller, deadline: Duration,
        answer: @escaping @Sendable ([String]) -> String
    ) async throws -> OnceAnswer {
        let identity = identity(of: caller)
        let outcome: Result<OnceAnswer, FailedStatement> = try await connection(of: caller) { connection in
            try await connection.transaction(
                keeping: { outcome in if case .success = outcome { true } else { false } },
                { connection throws(PostgresError) in
                    try await connection.execute(identity.sql, identity.parameters, deadline: deadline)
                    let begun = try await connection.query(
                        "select b.is_new, b.status, b.answer::text from millrace.gateway_begin($1, $2) b",
                        [.text(key), .bytea(request)], deadline: deadline
                    ) { row throws(PostgresError) in
                        try row.bool(0)
                            ? nil
                            : OnceAnswer(
                                status: Int(clamping: try row.int(1)), body: try row.string(2), isReplayed: true)
                    }
                    if case let earlier?? = begun.first { return .success(earlier) }
                    var texts: [String] = []
                    for (index, statement) in statements.enumerated() {
                        do throws(PostgresError) {
                            texts += try await connection.query(
                                statement.sql, statement.parameters, deadline: deadline
                            ) { row throws(PostgresError) in row.optionalString(0) ?? "null" }.prefix(1)
                        } catch {
                            return .failure(FailedStatement(index: index, error: error))
                        }
                    }
                    let body = answer(texts)
                    _ = try await connection.query(
                        "select millrace.gateway_end($1, $2, $3)", [.text(key), .int4(200), .json(body)],
                        deadline: deadline
                    ) { _ throws(PostgresError) in true }
                    return .success(OnceAnswer(status: 200, body: body, isReplayed: false))
                })
        }
        return try outcome.get()
    }
}
