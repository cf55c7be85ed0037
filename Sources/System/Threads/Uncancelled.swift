/// Runs `work` to its end also when the caller's task is cancelled: for what must be recorded or given back in any case. The caller waits for it.
package func uncancelled<Value: Sendable, Failure: Error>(
    @_inheritActorContext @_implicitSelfCapture _ work:
        @escaping @Sendable @isolated(any) () async throws(Failure) -> Value
) async throws(Failure) -> Value {
    let end = await Task { () -> Result<Value, Failure> in
        do throws(Failure) {
            return .success(try await work())
        } catch {
            return .failure(error)
        }
    }.value
    return try end.get()
}
