import FoundationEssentials
import MillraceQueues

extension QueueDepth {
    /// Counting stops here, unless an exact count is requested.
    static let cap = 10_000

    var json: JSONValue {
        [
            "queue": .string(name), "paused_at": JSONValue(pausedAt), "retention": .string(retention),
            "retention_by_state": [
                "succeeded": .string(retention), "cancelled": .string(retentionCancelled),
                "dead": .string(retentionDead),
            ],
            "ready": .int(ready), "scheduled": .int(scheduled), "running": .int(running),
            "oldest_ready_at": JSONValue(oldestReadyAt), "oldest_seconds": oldestAge.map(JSONValue.double) ?? .null,
        ]
    }

    /// - Parameter rates: what ended in the last five minutes; nil leaves their columns out.
    static func table(_ queues: [QueueDepth], rates: [RateRow]?, cap: Int?) -> Table {
        var columns = [
            Table.Column("queue", shrinks: true, importance: .key), Table.Column("ready", .trailing, importance: .high),
            Table.Column("scheduled", .trailing),
            Table.Column("running", .trailing), Table.Column("oldest", .trailing, importance: .high),
        ]
        if rates != nil {
            columns += [Table.Column("done/s", .trailing), Table.Column("failed", .trailing, importance: .high)]
        }
        columns += [Table.Column("retention", importance: .low), Table.Column("state", importance: .high)]
        var table = Table(columns, whenEmpty: "no queues yet")
        for queue in queues {
            var cells: [Table.Cell] = [
                Table.Cell(queue.name, .bold), Table.Cell(queue.amount(cap: cap).text),
                Table.Cell(counted(queue.scheduled, cap: cap)), Table.Cell(Humane.count(queue.running)),
                Table.Cell(
                    queue.oldestAge.map { Humane.duration(.seconds($0)) } ?? "-",
                    queue.isLate && queue.pausedAt == nil ? .yellow : .plain),
            ]
            if let rates {
                let total = RateSum(rates.filter { $0.queue == queue.name })
                cells += [
                    Table.Cell(total.runs == 0 ? "-" : Humane.decimal(total.succeededPerSecond, places: 1)),
                    Table.Cell(total.failedShare.map(Humane.percent) ?? "-", total.failed > 0 ? .yellow : .plain),
                ]
            }
            cells.append(Table.Cell(queue.retentions, .dim))
            cells.append(Table.Cell(queue.pausedAt == nil ? "" : "paused", .yellow))
            table.add(cells)
        }
        return table
    }

    /// `standard`, or `short, dead long` where the states differ.
    private var retentions: String {
        [
            retention, retentionCancelled == retention ? "" : "cancelled \(retentionCancelled)",
            retentionDead == retention ? "" : "dead \(retentionDead)",
        ].filter { !$0.isEmpty }.joined(separator: ", ")
    }
}

/// The runs that ended in the last five minutes, summed up.
struct RateSum {
    var succeeded = 0
    var failed = 0
    var runs = 0

    init(_ rows: [RateRow]) {
        for row in rows {
            succeeded += row.succeeded
            failed += row.failed
            runs += row.runs
        }
    }

    var succeededPerSecond: Double { Double(succeeded) / 300 }
    /// nil when nothing ran.
    var failedShare: Double? { runs == 0 ? nil : Double(failed) / Double(runs) }
}
