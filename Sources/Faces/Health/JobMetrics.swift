package import MillraceQueues
package import RoomKit
import SettingsKit
package import Workers

/// The jobs' part of `/metrics`: how runs ended in this process, and the work in the whole database.
package struct JobMetrics: Sendable {
    package var runs: [NamedRunCounts] = []
    /// nil: the database did not say, or not lately.
    package var measures: [MeasureRow]?
    /// The queues that are known, each with whether it is paused.
    package var queues: [String: Bool] = [:]

    package init(runs: [NamedRunCounts] = [], measures: [MeasureRow]? = nil, queues: [String: Bool] = [:]) {
        self.runs = runs
        self.measures = measures
        self.queues = queues
    }

    /// Older counts are left out: a flat line would be taken for calm.
    package static let oldest: Double = 60
    /// Beyond these many pairs of queue and kind the rest is `other`.
    package static let most = 500

    package var gauges: [RoomGauge] { [ended, taken, waited] + standing }

    private static func labels(_ queue: String?, _ kind: String?, _ more: [(String, String)] = []) -> String {
        RoomGauge.labels([("queue", queue ?? "other"), ("kind", kind ?? "other")] + more)
    }

    private var ended: RoomGauge {
        RoomGauge(
            name: "worker_runs_total", kind: "counter", help: "Runs that ended in this worker, by outcome.",
            values: runs.flatMap { one in
                [
                    ("succeeded", one.counts.succeeded), ("retried", one.counts.retried), ("dead", one.counts.dead),
                    ("cancelled", one.counts.cancelled), ("snoozed", one.counts.snoozed),
                ].map { outcome, count in
                    (Self.labels(one.queue, one.kind, [("outcome", outcome)]), Double(count))
                }
            })
    }

    private var taken: RoomGauge {
        histogram("worker_run_duration_seconds", "How long handlers took in this worker.") {
            ($0.buckets, $0.milliseconds)
        }
    }

    private var waited: RoomGauge {
        histogram(
            "worker_wait_duration_seconds",
            "How long jobs had waited since they were enqueued when their first run began in this worker; without those that were meant to wait."
        ) { ($0.waits, $0.waitMilliseconds) }
    }

    private func histogram(
        _ name: String, _ help: String, _ part: (RunCounts) -> (buckets: [Int], milliseconds: Int)
    ) -> RoomGauge {
        var gauge = RoomGauge(name: name, kind: "histogram", help: help, values: [])
        for one in runs {
            let (buckets, milliseconds) = part(one.counts)
            var sum = 0
            for (index, count) in buckets.enumerated() {
                sum += count
                let bound =
                    index < RunCounts.bounds.count
                    ? Humane.decimal(Double(RunCounts.bounds[index]) / 1000, places: 3) : "+Inf"
                gauge.values.append((Self.labels(one.queue, one.kind, [("le", bound)]), Double(sum), "_bucket"))
            }
            let labels = Self.labels(one.queue, one.kind)
            gauge.values.append((labels, Double(milliseconds) / 1000, "_sum"))
            gauge.values.append((labels, Double(sum), "_count"))
        }
        return gauge
    }

    private var standing: [RoomGauge] {
        guard let measures, measures.first.map({ $0.age <= Self.oldest }) ?? true else { return [] }
        var jobs: [Place: (jobs: Int, oldest: Double?)] = [:]
        var pairs: Set<Pair> = []
        for row in measures {
            var pair = Pair(queue: row.queue, kind: row.kind)
            if !pairs.contains(pair), pairs.count >= Self.most { pair = Pair(queue: "other", kind: "other") }
            pairs.insert(pair)
            let sum = jobs[Place(pair: pair, state: row.state)] ?? (0, nil)
            jobs[Place(pair: pair, state: row.state)] = (
                sum.jobs + row.jobs, [sum.oldest, row.oldest].compactMap { $0 }.max()
            )
        }
        let ordered = jobs.sorted { $0.key < $1.key }
        return [
            RoomGauge(
                name: "jobs",
                help:
                    "Jobs in the whole database; at most 10,000 ready ones of a line are counted. Every worker reports the same.",
                values: ordered.map { place, found in
                    (
                        Self.labels(place.pair.queue, place.pair.kind, [("state", place.state)]), Double(found.jobs)
                    )
                }),
            RoomGauge(
                name: "jobs_oldest_ready_seconds", help: "How long the oldest ready job has waited.",
                values: ordered.compactMap { place, found in
                    found.oldest.map { (Self.labels(place.pair.queue, place.pair.kind), $0) }
                }),
            RoomGauge(
                name: "queue_oldest_runnable_seconds",
                help: "How long the oldest job that could run has waited; 0 where none does, or the queue is paused.",
                values: runnable(measures).map { (RoomGauge.labels([("queue", $0.key)]), $0.value) }.sorted {
                    $0.0 < $1.0
                }),
            RoomGauge(
                name: "jobs_counted_seconds", help: "How long ago these jobs were counted.",
                value: measures.first?.age ?? 0),
        ]
    }

    private func runnable(_ measures: [MeasureRow]) -> [String: Double] {
        var oldest = queues.mapValues { _ in 0.0 }
        for row in measures where queues[row.queue] != true {
            oldest[row.queue] = max(oldest[row.queue] ?? 0, row.oldest ?? 0)
        }
        return oldest
    }

    private struct Pair: Hashable {
        var queue: String
        var kind: String
    }

    private struct Place: Hashable, Comparable {
        var pair: Pair
        var state: String

        static func < (left: Self, right: Self) -> Bool {
            (left.pair.queue, left.pair.kind, left.state) < (right.pair.queue, right.pair.kind, right.state)
        }
    }
}
