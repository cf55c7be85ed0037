#if Tracing
    import Millrace
    import MillraceTracing
    import Synchronization
    import Testing
    import Tracing

    /// A tracer that speaks W3C Trace Context, as those for OpenTelemetry do, and keeps what has ended.
    private final class Keeping: Tracer {
        struct Ended: Sendable {
            let name: String
            let kind: SpanKind
            let traceparent: String
            let parent: String?
            let attributes: [String: SpanAttribute]
            let links: [String]
            let failure: String?
        }

        enum Place: ServiceContextKey { typealias Value = String }

        final class Own: Tracing.Span {
            struct State {
                var name: String
                var attributes: SpanAttributes = [:]
                var links: [String] = []
                var failure: String?
            }
            let context: ServiceContext
            let kind: SpanKind
            let parent: String?
            let keeping: Keeping
            let state: Mutex<State>

            init(_ name: String, _ kind: SpanKind, under parent: ServiceContext, _ keeping: Keeping) {
                self.kind = kind
                self.parent = parent[Place.self]
                self.keeping = keeping
                state = Mutex(State(name: name))
                let trace =
                    self.parent.map { $0.split(separator: "-")[1] } ?? Substring(String(repeating: "a", count: 32))
                var context = parent
                let number = keeping.count.withLock { count in
                    count += 1
                    return count
                }
                context[Place.self] = "00-\(trace)-00000000000000\(10 + number)-01"
                self.context = context
            }

            var isRecording: Bool { true }
            var operationName: String {
                get { state.withLock { $0.name } }
                set { state.withLock { $0.name = newValue } }
            }
            var attributes: SpanAttributes {
                get { state.withLock { $0.attributes } }
                set { state.withLock { $0.attributes = newValue } }
            }
            func setStatus(_ status: SpanStatus) { state.withLock { $0.failure = status.message } }
            func addEvent(_ event: SpanEvent) {}
            func addLink(_ link: SpanLink) {
                state.withLock { $0.links.append(link.context[Place.self] ?? "none") }
            }
            func recordError<Instant: TracerInstant>(
                _ error: any Error, attributes: SpanAttributes, at instant: @autoclosure () -> Instant
            ) {}

            func end<Instant: TracerInstant>(at instant: @autoclosure () -> Instant) {
                let state = state.withLock { $0 }
                var found: [String: SpanAttribute] = [:]
                state.attributes.forEach { found[$0] = $1 }
                let ended = Ended(
                    name: state.name, kind: kind, traceparent: context[Place.self] ?? "", parent: parent,
                    attributes: found, links: state.links, failure: state.failure)
                keeping.ended.withLock { $0.append(ended) }
            }
        }

        let count = Mutex(0)
        let ended = Mutex<[Ended]>([])

        func startSpan<Instant: TracerInstant>(
            _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
            at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
        ) -> Own {
            Own(operationName, kind, under: context(), self)
        }
        func forceFlush() {}

        func extract<Carrier, Extract: Extractor>(
            _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
        ) where Extract.Carrier == Carrier {
            context[Place.self] = extractor.extract(key: "traceparent", from: carrier)
        }

        func inject<Carrier, Inject: Injector>(
            _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
        ) where Inject.Carrier == Carrier {
            if let place = context[Place.self] { injector.inject(place, forKey: "traceparent", into: &carrier) }
        }
    }

    private struct Torn: Error {}

    @Suite struct TracingTests {
        /// The system is bootstrapped once in a process.
        private static let keeping: Keeping = {
            let keeping = Keeping()
            InstrumentationSystem.bootstrap(keeping)
            return keeping
        }()

        @Test func `a request, its job's run, a step and a span of the handler's own are one tree`() async throws {
            let keeping = Self.keeping
            try await withQueue("traced") { database, client in
                client.useTracing()
                let worker = Worker(database: database, log: .silent, spans: TracingReceiver())
                worker.handle(Receipt.self, queue: "traced") { _, context in
                    try await context.step("charge") {
                        withSpan("POST /charges", ofKind: .client) { _ in }
                    }
                    return .done
                }
                async let report = worker.run(handlesSignals: false)
                let id = try await withSpan("POST /orders", ofKind: .server) { _ in
                    try await client.enqueue(Receipt(order: 7), options: EnqueueOptions(queue: "traced"))
                }
                #expect(try await client.end(of: id) == .succeeded)
                worker.drain()
                #expect(try await report.finished == 1)

                func span(_ name: String) throws -> Keeping.Ended {
                    try #require(keeping.ended.withLock { $0 }.first { $0.name == name }, "\(name)")
                }
                let (request, run) = (try span("POST /orders"), try span("process traced"))
                let (step, call) = (try span("step charge"), try span("POST /charges"))
                #expect(run.parent == request.traceparent && run.links == [request.traceparent])
                #expect(step.parent == run.traceparent && call.parent == step.traceparent)
                #expect(run.kind == .consumer && step.kind == .internal)
                #expect(run.attributes["messaging.message.id"] == .string("\(id)"))
                #expect(run.attributes["millrace.job.attempt"] == .int64(1) && run.failure == nil)
            }
        }

        @Test func `a statement's job belongs to the current span, and a run that fails says so`() async throws {
            let keeping = Self.keeping
            try await withQueue("failing") { database, client in
                let worker = Worker(database: database, log: .silent, spans: TracingReceiver())
                worker.handle(Receipt.self, queue: "failing") { _, _ in .discard("it is torn") }
                async let report = worker.run(handlesSignals: false)
                let options = withSpan("POST /returns") { _ in EnqueueOptions(queue: "failing").inCurrentSpan() }
                let id = try await client.enqueue(Receipt(order: 8), options: options)
                #expect(try await client.end(of: id) == .dead)
                worker.drain()
                #expect(try await report.finished == 1)
                let all = keeping.ended.withLock { $0 }
                let request = try #require(all.first { $0.name == "POST /returns" })
                let run = try #require(all.first { $0.name == "process failing" })
                #expect(run.parent == request.traceparent && run.failure == "dead")
            }
        }
    }
#endif
