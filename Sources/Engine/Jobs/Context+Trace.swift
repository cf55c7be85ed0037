package import Traces

extension Context {
    /// The `traceparent` of W3C Trace Context for what the handler calls and writes: of the step that is under way, or else of the run. Send
    /// it as a header, or name it in a transaction of your own: `select set_config('millrace.traceparent', $1, true)`. nil when the job was
    /// enqueued without one, and this worker records no traces.
    public var traceparent: String? { place?.traceparent }

    /// The `tracestate` that belongs to it; nil when there is none.
    public var tracestate: String? { place?.state }

    /// Of the step that is under way, or else of the run.
    package var place: TraceContext? {
        guard let trace else { return nil }
        guard let current = TraceContext.current, current.trace == trace.trace else { return trace }
        return current
    }

    /// Does a step's work as a span of its own.
    nonisolated(nonsending) func traced(
        _ step: String, _ body: () async throws -> [UInt8]
    ) async throws -> [UInt8] {
        guard let tracer, let place else { return try await body() }
        return try await tracer.span("step \(step)", .internal, under: place, [.text("millrace.step", step)], body)
    }
}
