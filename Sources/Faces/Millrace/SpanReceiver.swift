package import Traces

/// Keeps the spans of a worker's runs, their steps and their calls to providers. The product `MillraceTracing` has one for
/// swift-distributed-tracing. Without one a worker records no spans; a `CompleteWorker` sends them to a collector.
public protocol SpanReceiver: Sendable {
    /// Begins a span. Called by many threads at once; it must not take long.
    func begin(_ span: WorkerSpan) -> any OpenSpan
}

/// A span that has begun.
public protocol OpenSpan: Sendable {
    /// Its place as W3C Trace Context writes it, which jobs carry on that are enqueued within it; nil: this system has no such form.
    var place: WorkerSpan.Place? { get }
    /// Does work with this span as the current one. Call `body` once.
    nonisolated(nonsending) func within(_ body: () async -> Void) async
    /// It is over.
    func end(_ end: WorkerSpan.End)
}

/// What a worker says of a span when it begins.
public struct WorkerSpan: Sendable {
    /// What sort of work it is, in OpenTelemetry's words.
    public enum Kind: String, Sendable {
        /// A run of a job.
        case consumer
        /// A call to a provider.
        case client
        /// A step within a run.
        case `internal`
    }

    /// A place in a trace: the headers of W3C Trace Context.
    public struct Place: Sendable, Hashable {
        /// The header `traceparent`.
        public let traceparent: String
        /// The header `tracestate`; nil: there is none.
        public let tracestate: String?

        /// From the two headers.
        public init(traceparent: String, tracestate: String? = nil) {
            self.traceparent = traceparent
            self.tracestate = tracestate
        }
    }

    /// The value of an attribute.
    public enum Value: Sendable, Hashable {
        /// A text.
        case text(String)
        /// A whole number.
        case int(Int)
        /// True or false.
        case flag(Bool)
    }

    /// What is known of a span once it is over.
    public struct End: Sendable {
        /// By OpenTelemetry's names where it has some, such as `messaging.destination.name`.
        public let attributes: [String: Value]
        /// Other places that it has to do with: a run is linked to what enqueued its job.
        public let links: [Place]
        /// The kind of the failure, such as an outcome or the name of an error's type; nil: it did not fail.
        public let failure: String?
    }

    /// Such as `process mail`, `step charge` or `call resend`.
    public let name: String
    /// What sort of work it is.
    public let kind: Kind
    /// The span of this worker that it is a part of; nil: its parent is another process's, or it has none.
    public let parent: (any OpenSpan)?
    /// The place of its parent; nil: it begins a trace.
    public let parentPlace: Place?
}

/// A receiver, as the engine knows other tracing systems.
package struct ReceivingTracer: OutsideTracer {
    private let receiver: any SpanReceiver

    package init(_ receiver: any SpanReceiver) {
        self.receiver = receiver
    }

    package func begin(_ span: TraceSpan, under parent: TraceContext?) -> any OutsideSpan {
        let kind: WorkerSpan.Kind =
            switch span.kind {
            case .consumer: .consumer
            case .client: .client
            case .internal, .server, .producer: .internal
            }
        let open = receiver.begin(
            WorkerSpan(
                name: span.name, kind: kind, parent: (parent?.outside?.span as? ReceivedSpan)?.open,
                parentPlace: parent.map(WorkerSpan.Place.init)))
        return ReceivedSpan(open)
    }
}

private final class ReceivedSpan: OutsideSpan {
    let open: any OpenSpan
    let place: TraceContext?

    init(_ open: any OpenSpan) {
        self.open = open
        place = open.place.flatMap { TraceContext(traceparent: $0.traceparent, tracestate: $0.tracestate) }
    }

    nonisolated(nonsending) func within(_ body: () async -> Void) async {
        await open.within(body)
    }

    func end(_ span: TraceSpan) {
        let failure: String? = if case .error(let type) = span.status { type } else { nil }
        let attributes = span.attributes.map { attribute in
            let value: WorkerSpan.Value =
                switch attribute.value {
                case .text(let text): .text(text)
                case .int(let number): .int(number)
                case .flag(let flag): .flag(flag)
                }
            return (attribute.name, value)
        }
        open.end(
            WorkerSpan.End(
                attributes: Dictionary(attributes, uniquingKeysWith: { _, last in last }),
                links: span.links.map(WorkerSpan.Place.init), failure: failure))
    }
}

extension WorkerSpan.Place {
    fileprivate init(_ context: TraceContext) {
        self.init(traceparent: context.traceparent, tracestate: context.state)
    }
}
