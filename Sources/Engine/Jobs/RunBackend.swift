/// What a context can do beyond knowing; the runner of the handler provides it. A class, because every run holds it: one reference
/// count instead of one for each closure.
package final class RunBackend: Sendable {
    /// The steps on record for the context's job, by name, as JSON text.
    package let steps: @Sendable (Context) async throws -> [String: [UInt8]]
    /// Records a step under the context's lease, and returns the recorded value.
    package let record: @Sendable (_ context: Context, _ name: String, _ value: [UInt8]) async throws -> [UInt8]
    /// Takes note of progress, at once and without failing.
    package let progress: @Sendable (Context, JobProgress) -> Void
    /// Takes a line of log, at once and without failing.
    package let line: @Sendable (Context, LogLine) -> Void

    /// Enqueues jobs for the run; returns the number of the first.
    package let spawn: @Sendable (Context, Spawned) async throws -> Int64
    /// The same, and the step will be undone if the job does not succeed.
    package let recordUndoable: @Sendable (_ context: Context, _ name: String, _ value: [UInt8]) async throws -> [UInt8]
    /// Takes a step from the record that this run has undone.
    package let undone: @Sendable (Context) async throws -> Void
    /// Waits for something; nil: the run has ended, and its job waits.
    package let wait: @Sendable (Context, WaitRequest) async throws -> [UInt8]?
    /// Appends a value to the stream of the context's job. call: which of this run's calls it is.
    package let publish:
        @Sendable (_ context: Context, _ value: [UInt8], _ key: String?, _ call: Int64) async throws -> Void
    /// Replaces the state of the context's job.
    package let putState: @Sendable (_ context: Context, _ value: [UInt8]) async throws -> Void
    /// A page of the jobs that the context's job waited for, above a number.
    package let earlier: @Sendable (_ context: Context, _ after: Int64) async throws -> [EarlierJob]
    /// Only in a rehearsal.
    package let rehearsing: Rehearsing?
    /// Whether the context's job takes the new way of a change: decides it, and records it in the step of this name.
    package let changed: @Sendable (_ context: Context, _ step: String, _ change: String) async throws -> Bool

    package init(
        steps: @escaping @Sendable (Context) async throws -> [String: [UInt8]],
        record: @escaping @Sendable (_ context: Context, _ name: String, _ value: [UInt8]) async throws -> [UInt8],
        progress: @escaping @Sendable (Context, JobProgress) -> Void,
        line: @escaping @Sendable (Context, LogLine) -> Void,
        spawn: @escaping @Sendable (Context, Spawned) async throws -> Int64,
        recordUndoable:
            @escaping @Sendable (_ context: Context, _ name: String, _ value: [UInt8]) async throws -> [UInt8],
        undone: @escaping @Sendable (Context) async throws -> Void,
        wait: @escaping @Sendable (Context, WaitRequest) async throws -> [UInt8]?,
        publish:
            @escaping @Sendable (_ context: Context, _ value: [UInt8], _ key: String?, _ call: Int64) async throws ->
            Void,
        putState: @escaping @Sendable (_ context: Context, _ value: [UInt8]) async throws -> Void,
        earlier: @escaping @Sendable (_ context: Context, _ after: Int64) async throws -> [EarlierJob],
        changed: @escaping @Sendable (_ context: Context, _ step: String, _ change: String) async throws -> Bool = {
            _, _, _ in throw Unimplemented(name: "changed")
        },
        rehearsing: Rehearsing? = nil
    ) {
        self.steps = steps
        self.record = record
        self.progress = progress
        self.line = line
        self.spawn = spawn
        self.recordUndoable = recordUndoable
        self.undone = undone
        self.wait = wait
        self.publish = publish
        self.putState = putState
        self.earlier = earlier
        self.rehearsing = rehearsing
        self.changed = changed
    }

    /// For contexts without a runner.
    package static let unimplemented = RunBackend(
        steps: { _ in throw Unimplemented(name: "steps") },
        record: { _, _, _ in throw Unimplemented(name: "record") },
        progress: { _, _ in }, line: { _, _ in },
        spawn: { _, _ in throw Unimplemented(name: "spawn") },
        recordUndoable: { _, _, _ in throw Unimplemented(name: "recordUndoable") },
        undone: { _ in throw Unimplemented(name: "undone") },
        wait: { _, _ in throw Unimplemented(name: "wait") },
        publish: { _, _, _, _ in throw Unimplemented(name: "publish") },
        putState: { _, _ in throw Unimplemented(name: "putState") },
        earlier: { _, _ in throw Unimplemented(name: "earlier") })

    struct Unimplemented: Error, CustomStringConvertible {
        let name: String

        var description: String { "this context has no ability \(name)" }
    }
}
