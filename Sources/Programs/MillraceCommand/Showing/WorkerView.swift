import FoundationEssentials
import MillraceQueues

extension WorkerRow {
    var json: JSONValue {
        [
            "worker": .string(name), "host": .string(host), "pid": .int(pid), "version": .string(version),
            "build": JSONValue(build),
            "state": .string(state), "started_at": JSONValue(startedAt), "beat_at": JSONValue(beatAt),
            "beat_seconds": .double(beatAge), "slots": .int(slots), "running": .int(running), "waiting": .int(waiting),
            "stuck": .int(stuck), "clock_ahead_s": clockAhead.map { .double($0) } ?? .null, "queues": JSONValue(queues),
            "kinds": JSONValue(kinds), "direct": .bool(direct),
            "session": .string(session),
        ]
    }

    static func table(_ workers: [WorkerRow], kinds: Bool = false) -> Table {
        var columns = [
            Table.Column("worker", shrinks: true, importance: .key), Table.Column("state", importance: .high),
            Table.Column("slots", .trailing, importance: .high), Table.Column("beat", .trailing, importance: .high),
            Table.Column("up", .trailing), Table.Column("version", importance: .low), Table.Column("stuck", .trailing),
            Table.Column("queues", shrinks: true),
        ]
        if kinds { columns.append(Table.Column("kinds", shrinks: true, importance: .low)) }
        var table = Table(columns, whenEmpty: "no workers")
        for worker in workers {
            var cells = [
                Table.Cell(worker.name, .bold), Table.Cell(worker.state, worker.state == "working" ? .green : .yellow),
                Table.Cell("\(worker.running)/\(worker.slots)"),
                Table.Cell(Humane.duration(.seconds(worker.beatAge)), worker.isSilent ? .red : .plain),
                Table.Cell(Humane.duration(.seconds(max(0, -worker.startedAt.timeIntervalSinceNow)))),
                Table.Cell(worker.version), Table.Cell("\(worker.stuck)", worker.stuck > 0 ? .red : .dim),
                Table.Cell(worker.queues.isEmpty ? "all" : worker.queues.joined(separator: ",")),
            ]
            if kinds { cells.append(Table.Cell(worker.kinds.joined(separator: ","), .dim)) }
            table.add(cells)
        }
        return table
    }
}

extension Command {
    static let workersList = Command(
        ["workers", "list"],
        summary: "List the running workers",
        examples: [Example("millrace workers list", "who runs jobs, how many, how long")]
    ) { invocation in
        let workers = try await invocation.withSchema { try await Queue.workers(on: $0) }
        invocation.console.list("workers", workers.map(\.json), table: WorkerRow.table(workers, kinds: true))
        return .done
    }
}
