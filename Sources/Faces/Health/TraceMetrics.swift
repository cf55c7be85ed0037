package import RoomKit
package import Traces

/// What has become of this worker's spans.
package struct TraceMetrics {
    private let counts: Tracer.Counts

    package init(counts: Tracer.Counts) { self.counts = counts }

    package var gauges: [RoomGauge] {
        [
            RoomGauge(
                name: "trace_spans_total", kind: "counter",
                help: "Spans of this worker: sent to the collector, dropped by a full buffer, or failed.",
                values: [("sent", counts.sent), ("dropped", counts.dropped), ("failed", counts.failed)].map {
                    (labels: RoomGauge.labels([("outcome", $0.0)]), value: Double($0.1))
                })
        ]
    }
}
