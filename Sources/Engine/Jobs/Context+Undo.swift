import FoundationEssentials

/// A step of another job that a run undoes.
package struct Undo: Codable, Sendable, Equatable {
    /// The job that did not succeed.
    package var job: Int64
    package var step: String
}

/// A run that undoes a step is over: it does not go on behind it.
struct UndoIsDone: Error {}

/// A run that undoes a step did not come to it.
package struct UndoNotReached: Error, CustomStringConvertible {
    package let step: String
    package let why: String

    package init(step: String, why: String) {
        (self.step, self.why) = (step, why)
    }

    package var description: String { "step \(step) could not be undone: \(why)" }
}

extension Context {
    /// Does a part of the work once for all runs of the job, and says how it is undone. If the job dies or is cancelled, what was done is undone,
    /// the last step first, by jobs of the same kind: each goes through the handler with what is on record, up to its step, and calls `undo`
    /// with the recorded value. It is tried again as often as the kind allows; one that fails for good is a dead job that says so.
    ///
    /// ```swift
    /// let charge = try await context.step("charge", undo: { try await refund($0) }) {
    ///     try await charge(card, key: "\(context.id)-charge")
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - name: Its name within the job.
    ///   - undo: Undoes the work. It may run more than once.
    ///   - body: The work. Its value may take at most 1 MiB of JSON.
    @discardableResult
    nonisolated(nonsending) public func step<Value: Codable>(
        _ name: String, undo: (Value) async throws -> Void, _ body: () async throws -> Value
    ) async throws -> Value {
        guard let planned = self.undo else {
            guard takesUndos else { throw StepError.notUndoable(name: name) }
            return try await step(name, isUndoable: true, body)
        }
        guard let value: Value = try await onRecord(name) else {
            throw UndoNotReached(step: planned.step, why: "step \(name) before it is not on record")
        }
        guard planned.step == name else { return value }
        try await undo(value)
        try await end()
        return value
    }

    /// The recorded value of a step; nil: there is none.
    nonisolated(nonsending) private func onRecord<Value: Codable>(_ name: String) async throws -> Value? {
        guard case .recorded(let bytes) = try await turn(name) else { return nil }
        do {
            return try JSONDecoder().decode(Value.self, from: Data(bytes))
        } catch {
            throw StepError.undecodable(name: name, reason: "it is not a \(Value.self)")
        }
    }

    nonisolated(nonsending) func end() async throws {
        try await backend.undone(self)
        markUndone()
        throw UndoIsDone()
    }
}
