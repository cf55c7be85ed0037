import Postgres
package import RoomKit

extension Alarm {
    package static let webhookOff = Alarm("a webhook is switched off", look: "millrace webhooks list")
    package static let lateWebhooks = Alarm("events wait for their webhooks", look: "millrace webhooks list")
}

extension RoomStatus {
    static let webhooks = RoomStatus(key: "webhooks", title: "webhooks", alarms: [.webhookOff, .lateWebhooks]) {
        (connection, patience) async throws(PostgresError) in
        try await WebhookAdmin.state(on: connection, deadline: patience).status
    }
}

extension WebhookAdmin.State {
    /// What its view counts at most.
    private static let most = 10_000

    fileprivate var status: RoomState {
        let off = disabled > 0 ? " · \(Humane.count(disabled)) switched off" : ""
        let wait = Humane.count(waiting) + (waiting >= Self.most ? "+" : "")
        return RoomState(
            json: [
                "targets": .int(targets), "disabled": .int(disabled), "waiting": .int(waiting),
                "late_seconds": .double(late),
            ], lines: targets > 0 ? ["\(Humane.count(targets)) told of events\(off) · \(wait) deliveries wait"] : [],
            findings: findings)
    }

    private var findings: [Finding] {
        var found: [Finding] = []
        if disabled > 0 {
            found.append(
                Finding(
                    .webhookOff, .degraded,
                    "\(Humane.count(disabled, "webhook")) \(disabled == 1 ? "is" : "are") switched off"))
        }
        // A living worker takes due work at once.
        if late > 300 {
            found.append(
                Finding(
                    .lateWebhooks, .degraded,
                    "events wait for their webhooks for \(Humane.duration(.seconds(late)))"))
        }
        return found
    }
}
