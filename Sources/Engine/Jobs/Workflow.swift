/// A job with a result of a known type, which is started under an id of the caller's own: starting it again starts nothing.
///
/// ```swift
/// struct PlaceOrder: Workflow {
///     static let kind = "order.place"
///     typealias Result = Receipt
///     var number: Int
/// }
/// ```
public protocol Workflow: Job {
    /// What its handler returns.
    associatedtype Result: Codable & Sendable
}

/// Ends the job for good: thrown where ``Verdict/discard(_:)`` would be returned.
public struct Discarded: JobFailure, CustomStringConvertible {
    /// Why it can never succeed.
    public let description: String

    /// The job is dead, with this reason.
    public init(_ reason: String) { description = reason }

    /// It would not help.
    public var retry: Retry { .never }
}

extension Context {
    /// Waits for a signal to this job alone: `signal` of its handle or of a client with the job's number, `millrace.signal_job` in SQL,
    /// `millrace signal --job`. One that came before counts. Nil: the time was over.
    ///
    /// - Parameters:
    ///   - name: What is signalled.
    ///   - type: What its payload is.
    ///   - timeout: After this long it returns nil; without it, it waits for as long as it takes.
    ///   - step: The step's name, if a run waits for the same name more than once.
    nonisolated(nonsending) public func signal<Value: Decodable & Sendable>(
        _ name: String, as type: Value.Type, timeout: Duration? = nil, step: String? = nil
    ) async throws -> Value? {
        try await event(
            name, key: "millrace.job.\(id)", as: type, timeout: timeout, step: step ?? "signal \(name)")
    }

    /// Starts a workflow and waits for its end. It is started once, however often the run is repeated.
    nonisolated(nonsending) public func child<Flow: Workflow>(
        _ flow: Flow, queue: String? = nil, step: String? = nil
    ) async throws -> Earlier<Flow.Result> {
        try await child(flow, as: Flow.Result.self, queue: queue, step: step)
    }

    /// Starts up to a thousand workflows and waits until all of them have ended. In their order.
    nonisolated(nonsending) public func children<Flow: Workflow>(
        _ flows: [Flow], queue: String? = nil, step: String? = nil
    ) async throws -> [Earlier<Flow.Result>] {
        try await children(flows, as: Flow.Result.self, queue: queue, step: step)
    }
}
