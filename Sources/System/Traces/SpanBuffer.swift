/// Spans that wait to be sent, the oldest first. Full, it drops the oldest and counts them.
package struct SpanBuffer: Sendable {
    private var slots: [TraceSpan?]
    private var first = 0
    package private(set) var count = 0
    package private(set) var dropped = 0

    package init(capacity: Int) {
        slots = Array(repeating: nil, count: max(1, capacity))
    }

    package var capacity: Int { slots.count }

    package mutating func add(_ span: TraceSpan) {
        if count == slots.count {
            first = (first + 1) % slots.count
            count -= 1
            dropped += 1
        }
        slots[(first + count) % slots.count] = span
        count += 1
    }

    /// Up to `most` of the oldest, which leave it.
    package mutating func take(_ most: Int) -> [TraceSpan] {
        var taken: [TraceSpan] = []
        taken.reserveCapacity(min(most, count))
        while taken.count < most, count > 0 {
            if let span = slots[first] { taken.append(span) }
            slots[first] = nil
            first = (first + 1) % slots.count
            count -= 1
        }
        return taken
    }
}
