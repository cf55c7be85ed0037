import Threads

/// Runs blocking work on its own thread, so that it never blocks one of the cooperative pool.
///
/// A cancelled task makes `limit` end; the call still returns only when the work has.
func onOwnThread<Value: Sendable>(
    within limit: WorkDeadline,
    _ work: @escaping @Sendable () throws(ClusterError) -> Value,
) async throws(ClusterError) -> Value {
    let result: Result<Value, ClusterError> = await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
            let refusal = Thread.tryStart(name: "cluster") {
                let result: Result<Value, ClusterError>
                do throws(ClusterError) {
                    result = .success(try work())
                } catch {
                    result = .failure(error)
                }
                continuation.resume(returning: result)
            }
            if let error = refusal {
                let reason = describe(errno: error)
                continuation.resume(returning: .failure(.failed(step: "Starting a thread", log: [reason])))
            }
        }
    } onCancel: {
        limit.cancel()
    }
    return try result.get()
}
