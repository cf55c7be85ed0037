/// What a run that is rehearsed asks for.
package struct RehearsedAsk: Sendable {
    package var step: String
    /// nil: it would do the step's work.
    package var wait: WaitRequest?

    package init(step: String, wait: WaitRequest? = nil) {
        (self.step, self.wait) = (step, wait)
    }
}

/// What a context does in a rehearsal: it asks for steps, and does none.
package struct Rehearsing: Sendable {
    /// The value on record, or an error that ends the run.
    package let ask: @Sendable (Context, RehearsedAsk) async throws -> [UInt8]
    /// The value on record is not what the handler takes it for.
    package let misfit: @Sendable (_ context: Context, _ step: String, _ why: String) -> Void

    package init(
        ask: @escaping @Sendable (Context, RehearsedAsk) async throws -> [UInt8],
        misfit: @escaping @Sendable (_ context: Context, _ step: String, _ why: String) -> Void
    ) {
        (self.ask, self.misfit) = (ask, misfit)
    }
}

extension Context {
    func undecodable(_ step: String, _ why: String) -> StepError {
        backend.rehearsing?.misfit(self, step, why)
        return .undecodable(name: step, reason: why)
    }
}
