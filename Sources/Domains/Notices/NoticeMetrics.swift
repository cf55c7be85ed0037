package import RoomKit

extension NoticeStanding {
    /// What a worker has sent, and how far all workers are behind.
    package var gauges: [RoomGauge] {
        var gauges = [
            RoomGauge(
                name: "notices_total", kind: "counter", help: "Notices that this worker tried to send, by outcome.",
                values: [("alarm", alarms), ("plain", plain)].flatMap { lane, counts in
                    [
                        ("accepted", counts.accepted), ("refused", counts.refused), ("failed", counts.failed),
                        ("unknown", counts.unknown),
                    ].map { (labels: RoomGauge.labels([("lane", lane), ("outcome", $0.0)]), value: Double($0.1)) }
                })
        ]
        guard let state else { return gauges }
        gauges += [
            RoomGauge(
                name: "notices_waiting", help: "Due notices that no provider has taken yet, of all workers.",
                values: [("{lane=\"alarm\"}", Double(state.alarms)), ("{lane=\"plain\"}", Double(state.plain))]),
            RoomGauge(
                name: "notices_oldest_seconds", help: "How long the oldest of them has been due.",
                values: [("{lane=\"alarm\"}", state.alarmAge), ("{lane=\"plain\"}", state.plainAge)]),
            RoomGauge(
                name: "notices_alarms_lost", help: "Alarms of the last hour that reached nobody.",
                value: Double(state.lost)),
        ]
        return gauges
    }
}
