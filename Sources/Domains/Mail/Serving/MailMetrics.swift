import RoomKit

extension MailTally {
    /// The outcomes of this worker's messages.
    var gauges: [RoomGauge] {
        [
            RoomGauge(
                name: "mail_messages_total", kind: "counter",
                help: "Messages given to a provider, by outcome.",
                values: counts.sorted { $0.key < $1.key }.flatMap { provider, outcomes in
                    Outcome.allCases.map { outcome in
                        (
                            labels: RoomGauge.labels([("provider", provider), ("outcome", outcome.rawValue)]),
                            value: Double(outcomes[outcome] ?? 0)
                        )
                    }
                })
        ]
    }
}
