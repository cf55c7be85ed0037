import FoundationEssentials

extension Context {
    /// The most steps of one job.
    public static let mostSteps = 1000

    /// Does a part of the work once for all runs of the job. Its value is recorded; a later run (after a retry, a snooze, a hand-back or a
    /// crash) gets that value instead of doing the work again. A crash can still come between the work and its record, so
    /// an outside effect needs an idempotency key: ``id`` and the step's name are a good one.
    ///
    /// ```swift
    /// let charge = try await context.step("charge") { try await charge(card, key: "\(context.id)-charge") }
    /// ```
    /// - Parameters:
    ///   - name: Its name within the job, 1 to 128 characters. The same name again returns the recorded value.
    ///   - body: The work. Its value may take at most 1 MiB of JSON; an error is thrown on, and nothing is recorded.
    /// - Returns: The recorded value, decoded again: the first run sees the same as any other.
    /// - Throws: ``StepError``; `CancellationError` when the run was cancelled before the step began.
    @discardableResult
    nonisolated(nonsending) public func step<Value: Codable>(
        _ name: String, _ body: () async throws -> Value
    ) async throws -> Value {
        try await step(name, isUndoable: false, body)
    }

    nonisolated(nonsending) func step<Value: Codable>(
        _ name: String, isUndoable: Bool, _ body: () async throws -> Value
    ) async throws -> Value {
        let bytes = try await recorded(name, isUndoable: isUndoable) {
            let value = try await body()
            do throws(StoredJSON.Unfit) {
                return try StoredJSON.json(value)
            } catch {
                switch error {
                case .tooLarge(let bytes): throw StepError.tooLarge(name: name, bytes: bytes)
                case .noJSON(let reason): throw StepError.unencodable(name: name, reason: reason)
                }
            }
        }
        do {
            return try JSONDecoder().decode(Value.self, from: Data(bytes))
        } catch {
            throw undecodable(name, "it is not a \(Value.self)")
        }
    }

    /// Does a part of the work without a value once for all runs of the job.
    nonisolated(nonsending) public func step(_ name: String, _ body: () async throws -> Void) async throws {
        _ = try await recorded(name) {
            try await body()
            return Array("null".utf8)
        }
    }

    nonisolated(nonsending) private func recorded(
        _ name: String, isUndoable: Bool = false, _ body: () async throws -> [UInt8]
    ) async throws -> [UInt8] {
        guard (1...128).contains(name.unicodeScalars.count), !name.unicodeScalars.contains("\0") else {
            throw StepError.malformedName(name)
        }
        if let rehearsing = backend.rehearsing { return try await rehearsing.ask(self, RehearsedAsk(step: name)) }
        try Task.checkCancellation()
        switch try await turn(name) {
        case .recorded(let value): return value
        case .overlaps: throw StepError.overlapping(name: name)
        case .full: throw StepError.tooMany(name: name)
        case .read, .begin: break
        }
        do {
            if let undo { throw UndoNotReached(step: undo.step, why: "step \(name) before it is not on record") }
            let done = try await traced(name, body)
            let value =
                isUndoable
                ? try await backend.recordUndoable(self, name, done) : try await backend.record(self, name, done)
            withSteps { $0.settle(name, value) }
            return value
        } catch {
            withSteps { $0.leave(name) }
            throw error
        }
    }

    /// Reads the job's recorded steps at the first step of the run. One that undoes a step ends there if that is on record no more.
    nonisolated(nonsending) func turn(_ name: String) async throws -> RecordedSteps.Turn {
        let first = withSteps { $0.turn(name) }
        guard first == .read else { return first }
        let values = try await backend.steps(self)
        // Undone already, by a run whose end was not recorded.
        if let undo, values[undo.step] == nil { try await end() }
        return withSteps { steps in
            steps.read(values)
            return steps.turn(name)
        }
    }
}
