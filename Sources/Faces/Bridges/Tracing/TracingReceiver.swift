#if Tracing
    public import Millrace
    import Tracing

    /// Sends a worker's spans to the tracer that the program has given to `InstrumentationSystem.bootstrap`, of swift-distributed-tracing.
    ///
    /// ```swift
    /// InstrumentationSystem.bootstrap(tracer)
    /// let worker = Worker(spans: TracingReceiver())
    /// ```
    /// A run is a child of the place that its job carries. Within a handler the run is the current span, so what your code does with
    /// `withSpan` is a part of it. The tracer has to write and read `traceparent`, as those for OpenTelemetry do: jobs carry that.
    public struct TracingReceiver: SpanReceiver {
        /// Looks for the tracer when a span begins.
        public init() {}

        /// Begins a span of the tracer's.
        public func begin(_ span: WorkerSpan) -> any OpenSpan {
            let kind: SpanKind =
                switch span.kind {
                case .consumer: .consumer
                case .client: .client
                case .internal: .internal
                }
            let parent = (span.parent as? TracedSpan)?.span.context ?? span.parentPlace?.serviceContext
            return TracedSpan(startSpan(span.name, context: parent ?? .topLevel, ofKind: kind))
        }
    }

    private struct TracedSpan: OpenSpan {
        let span: any Span
        let place: WorkerSpan.Place?

        init(_ span: any Span) {
            self.span = span
            place = WorkerSpan.Place(span.context)
        }

        nonisolated(nonsending) func within(_ body: () async -> Void) async {
            await ServiceContext.$current.withValue(span.context) { await body() }
        }

        func end(_ end: WorkerSpan.End) {
            span.updateAttributes { attributes in
                for (name, value) in end.attributes {
                    switch value {
                    case .text(let text): attributes.set(name, value: .string(text))
                    case .int(let number): attributes.set(name, value: .int64(Int64(number)))
                    case .flag(let flag): attributes.set(name, value: .bool(flag))
                    }
                }
            }
            for link in end.links { span.addLink(SpanLink(context: link.serviceContext, attributes: [:])) }
            if let failure = end.failure { span.setStatus(SpanStatus(code: .error, message: failure)) }
            span.end()
        }
    }

    extension WorkerSpan.Place {
        /// As the tracer writes it; nil: it writes no `traceparent`.
        init?(_ context: ServiceContext) {
            var headers: [String: String] = [:]
            InstrumentationSystem.instrument.inject(context, into: &headers, using: Headers())
            guard let traceparent = headers["traceparent"] else { return nil }
            self.init(traceparent: traceparent, tracestate: headers["tracestate"])
        }

        /// As the tracer reads it.
        fileprivate var serviceContext: ServiceContext {
            var context = ServiceContext.topLevel
            var headers = ["traceparent": traceparent]
            headers["tracestate"] = tracestate
            InstrumentationSystem.instrument.extract(headers, into: &context, using: Headers())
            return context
        }
    }

    private struct Headers: Injector, Extractor {
        func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) {
            carrier[key.lowercased()] = value
        }

        func extract(key: String, from carrier: [String: String]) -> String? { carrier[key.lowercased()] }
    }
#endif
