package import RoomKit

extension WebhookService.Tally {
    /// What this worker has sent to webhooks.
    package var gauges: [RoomGauge] {
        [
            RoomGauge(
                name: "webhook_events_total", kind: "counter",
                help: "Events sent to webhooks, by outcome.",
                values: [("delivered", delivered), ("failed", failed), ("throttled", throttled), ("refused", refused)]
                    .map { (labels: RoomGauge.labels([("outcome", $0.0)]), value: Double($0.1)) })
        ]
    }
}
