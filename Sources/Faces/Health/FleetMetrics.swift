package import MillraceQueues
package import RoomKit

/// What the database has counted of the whole fleet: workers, storage, rooms, operations. Every worker reports the same.
package struct FleetMetrics: Sendable {
    /// A number that `millrace.measures_fleet` counts. What it brings beyond these, because the schema is newer, is left out.
    package struct Gauge: Sendable {
        package var name: String
        package var labels: [String] = []
        package var help: String
    }

    package static let all: [Gauge] = [
        Gauge(name: "queue_paused", labels: ["queue"], help: "1 while somebody has paused the queue."),
        Gauge(
            name: "jobs_unserved", labels: ["kind"],
            help: "Ready jobs of a kind that no running worker takes from their queue."),
        Gauge(name: "workers", labels: ["state"], help: "Sessions of workers; silent: no heartbeat for 8 s."),
        Gauge(name: "workers_slots", help: "Slots of all workers."),
        Gauge(name: "workers_stuck", help: "Handlers that ignore their cancellation and keep their slots."),
        Gauge(
            name: "schedules", labels: ["state"],
            help:
                "Schedules: all that are known, paused, unable to fire, overdue, and those that missed times in the last hour."
        ),
        Gauge(
            name: "approvals_open", labels: ["asked"],
            help: "Questions of jobs that wait for an answer, by whether people were asked by name; at most 10,000."),
        Gauge(name: "approvals_oldest_seconds", help: "How long the oldest of them has waited."),
        Gauge(
            name: "provider_circuit", labels: ["provider", "class", "state"],
            help: "1 for each provider that the fleet does not call as usual."),
        Gauge(name: "operations", labels: ["state"], help: "Operations on many jobs that have not ended."),
        Gauge(
            name: "operations_idle_seconds", labels: ["state"],
            help: "How long the operation that stalled first has not moved."),
        Gauge(name: "samples_age_seconds", help: "How long ago the last sample of the fleet was taken."),
        Gauge(name: "storage_bytes", labels: ["relation"], help: "Size of the tables, as of the last sample."),
        Gauge(name: "storage_dead_rows", labels: ["relation"], help: "Dead rows of the tables that change most."),
        Gauge(
            name: "storage_oldest_transaction_seconds",
            help: "How long the oldest transaction that keeps old row versions has been open."),
        Gauge(
            name: "storage_oldest_snapshot_transactions",
            help: "Age, in transactions, of the oldest row version that somebody may still need."),
        Gauge(name: "storage_history_ahead_seconds", help: "For how long partitions of history lie ahead."),
        Gauge(name: "storage_job_ids", help: "Ids for which partitions of job lie ahead."),
        Gauge(name: "storage_history_strays", help: "Rows of history in a default partition; at most 10,000."),
        Gauge(name: "database_connections", help: "Connections of clients to the server."),
        Gauge(name: "database_connections_left", help: "How many more the server has."),
        Gauge(name: "database_notifications_ratio", help: "How full the server's queue of notifications is, up to 1."),
        Gauge(
            name: "database_frozen_age_transactions",
            help: "Transactions since the oldest unfrozen row; the server stops at two billion."),
        Gauge(
            name: "room_waiting", labels: ["room", "lane"], help: "What is due in a lane of a room; at most 10,000."),
        Gauge(
            name: "room_later", labels: ["room", "lane"],
            help: "What is not due yet, or tried again after a pause; at most 10,000."),
        Gauge(name: "room_running", labels: ["room", "lane"], help: "What a worker has taken; at most 10,000."),
        Gauge(name: "room_oldest_seconds", labels: ["room", "lane"], help: "How long the oldest of it has been due."),
        Gauge(
            name: "room_ended_last_hour", labels: ["room", "lane"],
            help: "What ended of what was due in the last hour; at most 10,000."),
        Gauge(
            name: "room_failed_last_hour", labels: ["room", "lane"], help: "What failed among that."),
        Gauge(name: "room_workers", labels: ["room"], help: "Running workers that serve a room."),
        Gauge(
            name: "mail_held", labels: ["status"],
            help: "Messages of which nobody knows whether they were sent; parked ones wait for a human."),
        Gauge(name: "mail_switched", help: "1 while mail goes through a service other than the chosen one."),
        Gauge(name: "documents_processing", help: "Documents that are being read; at most 10,000."),
        Gauge(name: "documents_idle_seconds", help: "How long the one that stalled first has not moved."),
        Gauge(name: "documents_pages_waiting", help: "Pages that are still to be read; at most 10,000."),
        Gauge(name: "checkins_watches", help: "People who are watched over, approximately."),
        Gauge(name: "checkins_overdue", help: "Check-ins and steps of alarms that are due and not dealt with."),
        Gauge(name: "checkins_late_seconds", help: "How long the oldest of them has been due."),
        Gauge(name: "checkins_beat_seconds", help: "How long ago a worker last looked; -1 for never."),
        Gauge(name: "checkins_alarms_open", help: "Open alarms."),
        Gauge(name: "checkins_alarms_unreachable", help: "Alarms whose contacts were all told in vain."),
        Gauge(name: "checkins_broken", help: "Watches and alarms that cannot be dealt with."),
        Gauge(name: "families", help: "Families, about."),
        Gauge(name: "families_due", help: "Families whose midnight has passed; at most 10,000."),
        Gauge(name: "families_lag_seconds", help: "How long ago the earliest of these midnights was."),
        Gauge(name: "families_broken", help: "Families that cannot be rolled over midnight."),
        Gauge(name: "webhooks", labels: ["state"], help: "Webhooks by state."),
        Gauge(name: "webhooks_late_seconds", help: "How long the oldest due delivery has waited."),
        Gauge(name: "subscriptions", labels: ["state"], help: "Subscriptions by state; at most 10,000 are counted."),
        Gauge(
            name: "subscriptions_without", labels: ["what"],
            help: "Subscriptions in force that have no owner or no plan, of those that are counted."),
        Gauge(
            name: "subscriptions_late_seconds",
            help: "How long ago the oldest timed change that is still pending was due."),
    ]

    private let measures: [FleetMeasure]

    /// - Parameter measures: nil: the database did not say, or not lately.
    package init(_ measures: [FleetMeasure]?) {
        let isOld = measures?.first.map { $0.age > JobMetrics.oldest } ?? false
        self.measures = isOld ? [] : measures ?? []
    }

    /// The queues that are known, each with whether it is paused.
    package static func queues(of measures: [FleetMeasure]?) -> [String: Bool] {
        Dictionary(
            (measures ?? []).compactMap { one in
                one.name == "queue_paused" ? one.labels.first.map { ($0, one.value > 0) } : nil
            }, uniquingKeysWith: { $0 || $1 })
    }

    package var gauges: [RoomGauge] {
        let byName = Dictionary(grouping: measures, by: \.name)
        return Self.all.compactMap { gauge in
            let values = (byName[gauge.name] ?? []).filter { $0.labels.count == gauge.labels.count }
            guard !values.isEmpty else { return nil }
            return RoomGauge(
                name: gauge.name, help: gauge.help,
                values: values.map { one in
                    (labels: RoomGauge.labels(Array(zip(gauge.labels, one.labels))), value: one.value)
                }.sorted { $0.labels < $1.labels })
        }
    }
}
