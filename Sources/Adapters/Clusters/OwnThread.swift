import CLinux
import Glibc

/// Runs blocking work on its own thread, so that it never blocks one of the cooperative pool.
///
/// A cancelled task makes `limit` end; the call still returns only when the work has.
func onOwnThread<Value: Sendable>(
    within limit: WorkDeadline,
    _ work: @escaping @Sendable () throws(ClusterError) -> Value,
) async throws(ClusterError) -> Value {
    let result: Result<Value, ClusterError> = await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
            let job = ThreadJob {
                let result: Result<Value, ClusterError>
                do throws(ClusterError) {
                    result = .success(try work())
                } catch {
                    result = .failure(error)
                }
                continuation.resume(returning: result)
            }
            if let error = job.start() {
                let reason = describe(errno: error)
                continuation.resume(returning: .failure(.failed(step: "Starting a thread", log: [reason])))
            }
        }
    } onCancel: {
        limit.cancel()
    }
    return try result.get()
}

private final class ThreadJob: Sendable {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }

    /// Answers the error number if no thread could be had; the body then never runs.
    func start() -> Int32? {
        let context = Unmanaged.passRetained(self)
        var thread = pthread_t()
        let error = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                _ = millrace_name_thread("cluster")
                Unmanaged<ThreadJob>.fromOpaque(context).takeRetainedValue().body()
                return nil
            }, context.toOpaque())
        guard error == 0 else {
            context.release()
            return error
        }
        pthread_detach(thread)
        return nil
    }
}
