import MillraceQueues

extension LaneRow {
    /// Something waits in it, or did in the last hour.
    var isUsed: Bool { waiting + later + (running ?? 0) + (ended ?? 0) > 0 }

    var json: JSONValue {
        [
            "room": .string(room), "lane": .string(lane), "waiting": .int(waiting), "scheduled": .int(later),
            "running": JSONValue(running), "oldest_seconds": oldest.map(JSONValue.double) ?? .null,
            "ended_last_hour": JSONValue(ended), "failed_last_hour": JSONValue(failed),
            "failed_share": failedShare.map(JSONValue.double) ?? .null, "workers": .int(workers),
        ]
    }

    /// The columns of the table of queues, as far as they fit: `running` is a dash where the work is one transaction.
    static func table(_ lanes: [LaneRow], cap: Int?) -> Table {
        var table = Table([
            Table.Column("lane", shrinks: true, importance: .key),
            Table.Column("waiting", .trailing, importance: .high), Table.Column("scheduled", .trailing),
            Table.Column("running", .trailing), Table.Column("oldest", .trailing, importance: .high),
            Table.Column("failed", .trailing, importance: .high), Table.Column("workers", .trailing),
        ])
        for lane in lanes {
            let isServed = lane.workers > 0 || lane.waiting == 0
            table.add([
                Table.Cell("\(lane.room) \(lane.lane)", .bold),
                Table.Cell(QueueDepth.counted(lane.waiting, cap: cap)),
                Table.Cell(QueueDepth.counted(lane.later, cap: cap)),
                Table.Cell(lane.running.map { Humane.count($0) } ?? "-"),
                Table.Cell(lane.oldest.map { Humane.duration(.seconds($0)) } ?? "-"),
                Table.Cell(lane.failedShare.map(Humane.percent) ?? "-", (lane.failed ?? 0) > 0 ? .yellow : .plain),
                Table.Cell(Humane.count(lane.workers), isServed ? .plain : .yellow),
            ])
        }
        return table
    }
}

extension Invocation {
    /// The rooms that something waits in and that a pause of queues does not reach; none where they cannot be told.
    func roomsInUse() async -> [String] {
        let lanes = try? await withSchema { connection in
            try await Queue.roomLanes(cap: 1, on: connection, deadline: .seconds(2))
        }
        let inUse = (lanes ?? []).filter { $0.waiting + $0.later + ($0.running ?? 0) > 0 }.map(\.room)
        return inUse.enumerated().filter { !inUse[..<$0.offset].contains($0.element) }.map(\.element)
    }
}
