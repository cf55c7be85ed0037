package import FoundationEssentials
import Synchronization

/// Takes the spans of a process, and keeps those that are recorded until they are sent. Nothing of it waits: a full buffer drops.
///
/// A lock and no actor: every run ends a span, and none should wait for a turn.
package final class Tracer: Sendable {
    /// What has become of the spans since the start.
    package struct Counts: Sendable, Equatable {
        package var recorded = 0
        /// The collector has them.
        package var sent = 0
        /// The buffer was full.
        package var dropped = 0
        /// The collector refused them, or was away for too long.
        package var failed = 0

        package init(recorded: Int = 0, sent: Int = 0, dropped: Int = 0, failed: Int = 0) {
            self.recorded = recorded
            self.sent = sent
            self.dropped = dropped
            self.failed = failed
        }
    }

    private struct State {
        var buffer: SpanBuffer
        var counts = Counts()
    }

    package let sampling: TraceSampling
    /// Keeps the spans in place of the buffer.
    private let outside: (any OutsideTracer)?
    private let now: @Sendable () -> UInt64
    private let state: Mutex<State>

    package init(
        _ sampling: TraceSampling = .standard, capacity: Int = 8192,
        outside: (any OutsideTracer)? = nil, now: @escaping @Sendable () -> UInt64 = { Tracer.nanoseconds(Date()) }
    ) {
        self.sampling = sampling
        self.outside = outside
        self.now = now
        state = Mutex(State(buffer: SpanBuffer(capacity: capacity)))
    }

    /// Since 1970.
    package static func nanoseconds(_ date: Date) -> UInt64 {
        UInt64(min(max(0, date.timeIntervalSince1970), 1.8e10) * 1e9)
    }

    /// Begins a span. Without a parent it begins a trace.
    package func begin(
        _ name: String, _ kind: TraceSpan.Kind, under parent: TraceContext?, isRemote: Bool = false
    ) -> TraceSpan {
        var generator = SystemRandomNumberGenerator()
        let trace = parent?.trace ?? .random(using: &generator)
        let context = TraceContext(
            trace: trace, span: .random(using: &generator), isSampled: sampling.takes(trace, under: parent),
            state: parent?.state)
        var span = TraceSpan(context: context, parent: parent?.span, name: name, kind: kind, start: now())
        span.isParentRemote = isRemote
        if let held = outside?.begin(span, under: parent) {
            span.context = held.place ?? span.context
            span.context.outside = HeldOutside(held)
        }
        return span
    }

    /// Whether somebody wants to hear of a span's end.
    package func keeps(_ span: TraceSpan) -> Bool { span.context.isSampled || span.context.outside != nil }

    /// Takes a span that is over.
    package func end(_ span: TraceSpan) {
        if let outside = span.context.outside { return outside.span.end(span) }
        guard span.context.isSampled else { return }
        var span = span
        span.end = max(span.start, now())
        state.withLock { state in
            state.buffer.add(span)
            state.counts.recorded += 1
        }
    }

    /// Does `body` within a span. An error is its status: `type` names its kind, and says nothing else of it.
    nonisolated(nonsending) package func span<Value>(
        _ name: String, _ kind: TraceSpan.Kind, under parent: TraceContext?, links: [TraceContext] = [],
        _ attributes: [TraceSpan.Attribute] = [], type: (any Error) -> String = { "\(Swift.type(of: $0))" },
        _ body: () async throws -> Value
    ) async throws -> Value {
        var span = begin(name, kind, under: parent)
        span.links = links
        span.attributes = attributes
        do {
            let value = try await TraceContext.within(span.context, body)
            end(span)
            return value
        } catch {
            span.fail(type: type(error))
            end(span)
            throw error
        }
    }

    package var counts: Counts {
        state.withLock { state in
            var counts = state.counts
            counts.dropped = state.buffer.dropped
            return counts
        }
    }

    package var waiting: Int { state.withLock { $0.buffer.count } }

    /// For who sends them.
    package func take(_ most: Int) -> [TraceSpan] { state.withLock { $0.buffer.take(most) } }

    package func sent(_ count: Int) { state.withLock { $0.counts.sent += count } }

    package func failed(_ count: Int) { state.withLock { $0.counts.failed += count } }
}

extension TraceSpan {
    /// It has failed. The type alone: a message may hold what no collector should see.
    package mutating func fail(type: String) {
        status = .error(type)
        attributes.append(.text("error.type", type))
    }
}
