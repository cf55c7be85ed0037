import MillraceJobs
import MillraceQueues
import Postgres

extension ReportWriter {
    /// Asked again after a lost answer, the database says the same.
    func changed(_ context: Context, step: String, _ change: String) async throws -> Bool {
        let token = context.token
        do throws(PostgresError) {
            return try await patiently(context) { connection throws(PostgresError) in
                try await Queue.changed(change, token: token, on: connection)
            }
        } catch {
            if error == .cancelled { throw CancellationError() }
            let why = Self.explain(error, name: step, bytes: 5)
            if case .leaseLost = why { lose(context) }
            throw why
        }
    }
}
