extension Context {
    /// Appends a value to the job's stream, which its owner reads while the job runs and afterwards: `millrace jobs tail`, or `stream(of:as:from:)`
    /// of a client. When the call returns the value is on disk, and readers see it with the next number: 1, 2, 3, without gaps. It costs a round
    /// trip and a commit. A run that repeats publishes again what has no key; each value says which attempt it is from.
    ///
    /// ```swift
    /// try await context.publish(Row(name: "Ada"), key: "row-1")
    /// ```
    /// - Parameters:
    ///   - value: At most 1 MiB of JSON. A job's stream holds 10,000 values and 16 MiB; more are refused, and nothing is dropped.
    ///   - key: 1 to 512 characters. The same key again, in this run or a later one, publishes nothing; the first value stays.
    /// - Throws: ``OutputError``; `CancellationError` when the run was cancelled before.
    nonisolated(nonsending) public func publish(_ value: some Encodable, key: String? = nil) async throws {
        if let key, !(1...512).contains(key.unicodeScalars.count) || key.unicodeScalars.contains("\0") {
            throw OutputError.malformedKey(characters: key.unicodeScalars.count)
        }
        let bytes = try Self.output(value)
        if undo != nil { return }  // the run whose work is undone has published it
        try Task.checkCancellation()
        try await backend.publish(self, bytes, key, nextCall())
    }

    /// Replaces the job's one state, which `millrace jobs show` and `state(of:as:)` of a client answer with: what a caller may ask of a job that
    /// runs or waits. On disk when the call returns; it costs a round trip and a commit, so give it when it has changed.
    /// - Parameter value: At most 1 MiB of JSON.
    /// - Throws: ``OutputError``; `CancellationError` when the run was cancelled before.
    nonisolated(nonsending) public func state(_ value: some Encodable) async throws {
        let bytes = try Self.output(value)
        if undo != nil { return }
        try Task.checkCancellation()
        try await backend.putState(self, bytes)
    }

    private static func output(_ value: some Encodable) throws(OutputError) -> [UInt8] {
        do throws(StoredJSON.Unfit) {
            return try StoredJSON.json(value)
        } catch {
            switch error {
            case .tooLarge(let bytes): throw .tooLarge(bytes: bytes)
            case .noJSON(let reason): throw .unencodable(reason: reason)
            }
        }
    }
}
