import Faults
import Traces

extension Supervisor {
    /// Makes a call as a span of its own, if it belongs to a trace: a child of the first place, with links to the others.
    nonisolated func traced<Value: Sendable>(
        _ provider: String, _ name: String, isRetry: Bool, _ places: [TraceContext]?,
        _ body: () async throws -> Value
    ) async throws -> Value {
        let places = places ?? TraceContext.current.map { [$0] } ?? []
        guard let tracer = options.tracer, let parent = places.first else {
            return try await TraceContext.within(places.first, body)
        }
        // One name for all webhooks, whose providers have an id each.
        let family = String(provider.prefix { $0 != ":" })
        return try await tracer.span(
            "call \(family)", .client, under: parent,
            links: Array(places.dropFirst().prefix(128)),  // as many as OpenTelemetry keeps
            [
                .text("peer.service", family), .text("millrace.provider", provider),
                .text("millrace.provider.class", name), TraceSpan.Attribute("millrace.call.is_retry", .flag(isRetry)),
            ],
            // A class and no sentence: what a provider says may hold what it was sent.
            type: { ($0 as? Fault).map { "\($0.kind)" } ?? "\(type(of: $0))" }, body)
    }
}
