package import Postgres
import Traces

/// Calls the database as the caller. Each call is one transaction in the clients' role with the caller's claims, so the rights of the
/// doors decide.
package struct GatewayDatabase: Sendable {
    package let pool: Pool
    /// The clients' role, which nobody logs in as.
    package let role: String

    package init(pool: Pool, role: String) {
        self.pool = pool
        self.role = role
    }

    /// One transaction and one round trip: takes on the role and the claims, then runs the statements. On a connection of the caller's share:
    /// its further calls wait in a line of their own.
    /// - Parameter decode: reads a row of the statement with this index.
    /// - Returns: the rows of each statement.
    package func run<Element: Sendable>(
        _ statements: [Statement], as caller: GatewayCaller, deadline: Duration = Self.patience,
        decode: @escaping @Sendable (Int, Row) throws(PostgresError) -> Element
    ) async throws -> [[Element]] {
        let identity = identity(of: caller)
        let outcome: Result<[[Element]], FailedStatement> = try await connection(of: caller) { connection in
            do throws(FailedStatement) {
                let answers = try await connection.transaction(
                    of: [identity] + statements, deadline: deadline
                ) { (index, row) throws(PostgresError) -> Element? in
                    index == 0 ? nil : try decode(index - 1, row)
                }
                return .success(answers.dropFirst().map { $0.compactMap(\.self) })
            } catch {
                return .failure(FailedStatement(index: error.index - 1, error: error.error))
            }
        }
        return try outcome.get()
    }

    func connection<Value: Sendable>(
        of caller: GatewayCaller, _ body: (Connection) async throws -> Value
    ) async throws -> Value {
        try await pool.share(of: caller.subject).withConnection(body)
    }

    /// Does it again while another process holds what it waits for, as long as a call may take. Its connection is given back meanwhile.
    func untilFree<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        let end = ContinuousClock.now + Self.patience
        var pause = Duration.milliseconds(50)
        while true {
            do {
                return try await body()
            } catch let error where Self.isHeld(error) && ContinuousClock.now + pause < end {
                try await Task.sleep(for: pause)
                pause = min(pause * 2, .milliseconds(500))
            }
        }
    }

    /// A lock did not come free, and nothing was done.
    private static func isHeld(_ error: any Error) -> Bool {
        let error = (error as? FailedStatement)?.error ?? error as? PostgresError
        return error?.sqlState == "55P03"
    }

    /// The first statement of each transaction: who the rest is done as.
    func identity(of caller: GatewayCaller) -> Statement {
        Statement(
            """
            select set_config('role', $1, true), set_config('request.jwt.claims', $2, true), set_config('jit', 'off', true),
                   set_config('millrace.client_lag', $3, true), set_config('millrace.traceparent', $4, true),
                   set_config('millrace.tracestate', $5, true)
            """,
            [
                .text(role), .text(String(decoding: caller.claims, as: UTF8.self)), .text(caller.clockLag ?? ""),
                .text(caller.trace?.traceparent ?? ""), .text(caller.trace?.state ?? ""),
            ])
    }

    package static let patience = Duration.seconds(10)
}
