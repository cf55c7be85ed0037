import MillraceJobs
import MillraceQueues
import Traces

/// The spans of runs, as OpenTelemetry's conventions for messaging have them: a run is a child of what enqueued its job, and links to it.
struct RunSpans: Sendable {
    /// nil: this worker records no traces. Jobs that a run enqueues then belong to its own job's enqueuer.
    let tracer: Tracer?
    let worker: String

    /// A run's place in its trace, and its span if one is recorded.
    struct Begun: Sendable {
        var span: TraceSpan?
        var place: TraceContext?
    }

    func begin(_ job: Claimed, kind: String, queue: String) -> Begun {
        let enqueuer = TraceContext.carried(by: job.metadata)
        guard let tracer else { return Begun(span: nil, place: enqueuer) }
        var span = tracer.begin("process \(queue)", .consumer, under: enqueuer, isRemote: true)
        guard tracer.keeps(span) else { return Begun(span: nil, place: span.context) }
        if let enqueuer { span.links = [enqueuer] }
        span.attributes = [
            .text("messaging.system", "millrace"), .text("messaging.operation.name", "process"),
            .text("messaging.operation.type", "process"), .text("messaging.destination.name", queue),
            .text("messaging.message.id", "\(job.id)"), .text("messaging.client.id", worker),
            .text("millrace.job.kind", kind), .int("millrace.job.attempt", Int(job.attempt) + 1),
        ]
        return Begun(span: span, place: span.context)
    }

    /// - Parameter end: nil: the lease was lost.
    func end(_ span: TraceSpan?, _ end: Ended?) {
        guard let tracer, var span else { return }
        let outcome = end.map { "\($0.outcome)" } ?? "lease_lost"
        span.attributes.append(.text("millrace.job.outcome", outcome))
        switch end?.outcome {
        case .retried, .dead, nil: span.fail(type: outcome)
        case .succeeded, .cancelled, .snoozed, .waiting, .released: break
        }
        tracer.end(span)
    }
}
