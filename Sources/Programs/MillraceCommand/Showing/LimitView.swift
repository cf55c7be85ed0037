import FoundationEssentials
import MillraceJobs
import MillraceQueues

extension LimitRow {
    var json: JSONValue {
        [
            "scope": .string(subject.scope), "name": .string(subject.name),
            "concurrency": JSONValue(limit.concurrency), "running": JSONValue(running), "parked": JSONValue(parked),
            "rate": JSONValue(limit.rate?.count),
            "per_seconds": limit.rate.map { .double($0.per / .seconds(1)) } ?? .null,
            "burst": JSONValue(limit.rate?.burst), "weight": limit.weight.map(JSONValue.double) ?? .null,
            "changed_at": JSONValue(changedAt),
        ]
    }

    static func table(_ rows: [LimitRow]) -> Table {
        var table = Table(
            [
                Table.Column("limit of", importance: .high), Table.Column("name", shrinks: true, importance: .key),
                Table.Column("at once", .trailing, importance: .high),
                Table.Column("running", .trailing, importance: .high),
                Table.Column("held back", .trailing, importance: .high), Table.Column("rate"),
                Table.Column("weight", .trailing, importance: .low),
            ], whenEmpty: "no limits")
        for row in rows {
            let isFull = row.running.map { $0 >= row.limit.concurrency ?? .max } ?? false
            table.add([
                Table.Cell(row.subject.scope), Table.Cell(row.subject.name, .bold),
                Table.Cell(row.limit.concurrency.map { Humane.count($0) } ?? "-"),
                Table.Cell(row.running.map { Humane.count($0) } ?? "each", isFull ? .yellow : .plain),
                Table.Cell(row.parked.map { QueueDepth.counted($0, cap: 10_000) } ?? "-"),
                Table.Cell(row.limit.rate?.text ?? "-"),
                Table.Cell(row.limit.weight.map { Humane.decimal($0, places: 1) } ?? "-"),
            ])
        }
        return table
    }
}

extension Limit.Rate {
    var text: String {
        let rate = "\(Humane.count(count)) per \(DurationText.spell(per))"
        return burst.map { $0 == count ? rate : "\(rate), burst \(Humane.count($0))" } ?? rate
    }
}

extension Limit {
    var sentence: String {
        var parts: [String] = []
        if let concurrency { parts.append("\(Humane.count(concurrency)) at once") }
        if let rate { parts.append(rate.text) }
        if let weight { parts.append("weight \(Humane.decimal(weight, places: 1))") }
        return parts.joined(separator: ", ")
    }
}
