#if Tracing
    public import Millrace
    import Tracing

    extension Client {
        /// Makes each job of this client a part of the span that is current when it is enqueued, unless the job names a place itself.
        public func useTracing() {
            use { job in
                guard let context = ServiceContext.current, let place = WorkerSpan.Place(context) else { return }
                job.carry(traceparent: place.traceparent, tracestate: place.tracestate)
            }
        }
    }

    extension EnqueueOptions {
        /// The same options for a job that is a part of the current span: for a statement, or a connection of PostgresNIO.
        public func inCurrentSpan() -> EnqueueOptions {
            guard let context = ServiceContext.current, let place = WorkerSpan.Place(context) else { return self }
            var options = self
            options.traceparent = place.traceparent
            options.tracestate = place.tracestate
            return options
        }
    }
#endif
