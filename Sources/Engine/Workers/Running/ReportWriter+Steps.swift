import MillraceJobs
import MillraceQueues
import Postgres
import Telemetry
import Threads

extension ReportWriter {
    /// How long a cancelled run still tries to record what its step has done.
    private static let lastTry = Duration.seconds(5)

    /// What is on record for the run's job; one question for all steps of a run. Of a run that undoes one they are those of the other job, and
    /// none once that is undone.
    func steps(_ context: Context) async throws -> [String: [UInt8]] {
        let (id, token) = (context.id, context.token)
        let undoes = context.undo != nil
        do throws(PostgresError) {
            let rows = try await patiently(context) { connection throws(PostgresError) in
                undoes
                    ? try await Queue.stepsToUndo(token: token, on: connection)
                    : try await Queue.steps(of: id, on: connection)
            }
            return Dictionary(rows.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        } catch {
            if error == .cancelled { throw CancellationError() }
            if case .leaseLost = Self.explain(error, name: context.undo?.step ?? "", bytes: 0) { lose(context) }
            throw error
        }
    }

    /// Recorded in any case, and also when the run is cancelled meanwhile: what the step did has happened.
    func record(
        _ context: Context, _ name: String, _ value: [UInt8], isUndoable: Bool = false
    ) async throws -> [UInt8] {
        let token = context.token
        do throws(PostgresError) {
            return try await uncancelled { () throws(PostgresError) in
                try await patiently(context) { connection throws(PostgresError) in
                    try await Queue.step(name, value: value, token: token, isUndoable: isUndoable, on: connection)
                }
            }
        } catch {
            let why = Self.explain(error, name: name, bytes: value.count)
            if case .leaseLost = why { lose(context) }
            throw why
        }
    }

    /// Takes the step from the record that this run has undone. If that fails the undo is done again.
    func undone(_ context: Context) async throws {
        let token = context.token
        _ = try await patiently(context) { connection throws(PostgresError) in
            try await connection.execute("select millrace.step_undone($1)", [.text(token)])
        }
    }

    /// Waits for a database that is away, for as long as the run may.
    func patiently<Value: Sendable>(
        _ context: Context, _ body: @Sendable (Connection) async throws(PostgresError) -> Value
    ) async throws(PostgresError) -> Value {
        var cancelled: ContinuousClock.Instant?
        return try await RetryingLoop.value(
            pause: { (pause) throws(PostgresError) in
                do { try await Task.sleep(for: pause) } catch { throw .cancelled }
            },
            of: { try await pool.withConnection(body) },
            failed: { error throws(PostgresError) in
                guard let error = error as? PostgresError, !Task.isCancelled else { throw .cancelled }
                guard error.isOutage || error.outcomeUnknown else { throw error }
                if context.cancelReason != nil {
                    let since = cancelled ?? .now
                    cancelled = since
                    if since.duration(to: .now) > Self.lastTry { throw error }
                }
                return true
            })
    }

    static func explain(_ error: PostgresError, name: String, bytes: Int) -> StepError {
        guard case .server(let server) = error else { return .refused(name: name, reason: error.description) }
        switch server.sqlState {
        case "55000" where server.detail?.contains("lease_lost") == true: return .leaseLost(name: name)
        case "53400" where server.detail?.contains("value") == true: return .tooLarge(name: name, bytes: bytes)
        case "53400": return .tooMany(name: name)
        default: return .refused(name: name, reason: error.description)
        }
    }

    /// The database has no such lease: all its runs here are to stop.
    func lose(_ context: Context) {
        workerState.lose([context.number]).settle(session: workerState.session, log: log)
        log.warning("a step was refused: the lease is lost, and its runs are cancelled", context.data)
    }
}
