extension Context {
    /// What the names of the steps begin with that record such answers.
    package static let changePrefix = "changed "

    /// Whether this job goes the new way, for code that was changed while jobs were under way. True for a job whose work began with code that
    /// asks for this change; false for one that recorded a step, failed, snoozed or waited with earlier code. The answer is recorded as the step
    /// `changed <name>`, and stays the same for all runs of the job.
    ///
    /// ```swift
    /// if try await context.changed("fraud-check") {
    ///     try await context.step("check") { try await check(order) }
    /// }
    /// try await context.step("charge") { try await charge(order) }
    /// ```
    ///
    /// The old way can be deleted when no job is left for which the answer was false: `millrace versions changes` says so. Delete the call with it.
    /// Builds are told apart by `MILLRACE_BUILD`, else by the hash of the executable.
    ///
    /// - Parameter name: Of the change, 1 to 100 characters. It is for one kind of job.
    nonisolated(nonsending) public func changed(_ name: String) async throws -> Bool {
        guard (1...100).contains(name.unicodeScalars.count), !name.unicodeScalars.contains("\0") else {
            throw StepError.malformedName(name)
        }
        try Task.checkCancellation()
        let step = Self.changePrefix + name
        // What is on record, or the old way: the call may come and go.
        if backend.rehearsing != nil { return try await backend.changed(self, step, name) }
        switch try await turn(step) {
        case .recorded(let value): return value == Array("true".utf8)
        case .overlaps: throw StepError.overlapping(name: step)
        case .full: throw StepError.tooMany(name: step)
        case .read, .begin: break
        }
        do {
            // What is undone began without it, or it would be on record.
            let answer = undo == nil ? try await backend.changed(self, step, name) : false
            withSteps { $0.settle(step, Array((answer ? "true" : "false").utf8)) }
            return answer
        } catch {
            withSteps { $0.leave(step) }
            throw error
        }
    }
}
