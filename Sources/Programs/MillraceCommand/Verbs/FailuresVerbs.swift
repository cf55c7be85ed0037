import FoundationEssentials
import MillraceQueues

extension Command {
    static let failuresList = Command(
        ["failures", "list"],
        summary: "List what fails, grouped by cause",
        discussion: """
            A group is all failed runs of a kind whose errors differ only in numbers, ids and mail addresses, since the \
            group was first seen. Workers count as they go, so this answers at once however many jobs are dead. A group \
            is forgotten 30 days after its last failure.
            """,
        flags: [
            .single("kind", "KIND", .kindName, help: "Only failures of this kind."),
            .single("queue", "NAME", .queueName, help: "Only failures in this queue, counted there."),
            .single(
                "since", "TIME", .past, environment: .none,
                help: "Only groups seen at this time or later; 2h is two hours ago."),
            .single(
                "sort", "BY", .choice(["last", "first", "failed", "dead"]), fallback: "last",
                help: "The order: by the last or first failure, or by how many runs failed or jobs died."),
            .single("limit", "N", .integer(1...500), fallback: "50", help: "Show at most this many."),
            .single(
                "after", "ID", .integer(1...Int.max), environment: .none, help: "Only groups that follow this one."),
        ],
        examples: [
            Example("millrace failures list --since 1h", "what fails now"),
            Example("millrace failures list --sort first", "what is new, perhaps since the last deploy"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let limit = parsed.integer("limit") ?? 50
        let since = try parsed.string("since").map(Invocation.moment)
        let groups = try await invocation.withSchema { connection in
            try await Queue.failureGroups(
                since: since, kind: parsed.string("kind"), queue: parsed.string("queue"),
                sort: parsed.string("sort") ?? "last", after: parsed.integer("after").map { Int64($0) }, limit: limit,
                on: connection)
        }
        invocation.console.list("groups", groups.map(\.json), table: FailureGroup.table(groups))
        if groups.count == limit, invocation.console.format == .human, let last = groups.last {
            invocation.console.note("more may follow: --after \(last.id)")
        }
        return .done
    }

    static let failuresShow = Command(
        ["failures", "show"],
        summary: "Show a group of failures, and its latest dead and retrying jobs",
        arguments: [Argument("id", .one, .integer(1...Int.max), help: "the group's id")],
        flags: [.single("limit", "N", .integer(1...500), fallback: "20", help: "Show at most this many jobs.")],
        examples: [
            Example("millrace failures show 7", "since when, in which versions, which jobs"),
            Example("millrace jobs retry --state dead --group 7", "then, once it is fixed: all of them again"),
        ]
    ) { invocation in
        let id = Int64(invocation.parsed.integer("id") ?? 0)
        let limit = invocation.parsed.integer("limit") ?? 20
        let (group, jobs) = try await invocation.withSchema { connection in
            guard let group = try await Queue.failureGroup(id, on: connection) else {
                throw Failure(.notFound, "there is no group of failures \(id)", hint: "millrace failures list")
            }
            var found: [FoundFailure] = []
            var after: Int64?
            repeat {
                try Task.checkCancellation()
                let part = try await Queue.jobs(
                    ofFailures: id, after: after, limit: limit - found.count, on: connection)
                found += part.jobs
                after = part.next
            } while after != nil && found.count < limit
            return (group, found)
        }
        let items = jobs.map { job -> JSONValue in ["id": .int(Int(job.id)), "state": .string(job.state)] }
        invocation.console.show(.object(group.members + [.init(key: "jobs", value: .array(items))])) {
            let colors = invocation.console.colorsOutput
            for line in group.lines(jobs, colors: colors) { invocation.console.print(line) }
        }
        return .done
    }
}

extension FailureGroup {
    var members: [JSONValue.Member] {
        [
            .init(key: "id", value: .int(Int(id))), .init(key: "kind", value: .string(kind)),
            .init(key: "class", value: .string(errorClass)), .init(key: "gist", value: .string(gist)),
            .init(key: "first_at", value: JSONValue(firstAt)), .init(key: "last_at", value: JSONValue(lastAt)),
            .init(key: "first_version", value: JSONValue(firstVersion)),
            .init(key: "last_version", value: JSONValue(lastVersion)), .init(key: "failed", value: .int(failed)),
            .init(key: "dead", value: .int(dead)), .init(key: "queues", value: .array(queues.map { .string($0) })),
            .init(key: "examples", value: .array(examples.map { .int(Int($0)) })),
            .init(key: "rest", value: .bool(isRest)),
        ]
    }

    var json: JSONValue { .object(members) }

    static func table(_ groups: [FailureGroup]) -> Table {
        var table = Table(
            [
                Table.Column("id", .trailing), Table.Column("failed", .trailing), Table.Column("dead", .trailing),
                Table.Column("kind", shrinks: true), Table.Column("class"), Table.Column("first"),
                Table.Column("last"), Table.Column("since version"), Table.Column("error", shrinks: true),
            ], whenEmpty: "nothing has failed")
        for group in groups {
            table.add([
                Table.Cell("\(group.id)", .bold), Table.Cell(Humane.count(group.failed)),
                Table.Cell(Humane.count(group.dead)), Table.Cell(group.kind), Table.Cell(group.errorClass),
                Table.Cell(Humane.relative(group.firstAt), .dim), Table.Cell(Humane.relative(group.lastAt)),
                Table.Cell(group.firstVersion ?? "-", .dim), Table.Cell(DisplayWidth.harmless(group.gist)),
            ])
        }
        return table
    }

    func lines(_ jobs: [FoundFailure], colors: Bool) -> [String] {
        func versions() -> String {
            switch (firstVersion, lastVersion) {
            case (let first?, let last?) where first != last: "first with version \(first), last with \(last)"
            case (let first?, _): "with version \(first)"
            default: "with a version that is not known any more"
            }
        }
        var lines = [
            "\(kind): \(DisplayWidth.harmless(gist))",
            "class \(errorClass), in \(queues.joined(separator: ", "))",
            "\(Humane.count(failed, "failed run")), \(Humane.count(dead, "job")) died",
            "first \(Humane.relative(firstAt)), last \(Humane.relative(lastAt)), \(versions())",
        ]
        for job in jobs { lines.append("  job \(job.id) is \(job.state)") }
        if jobs.isEmpty { lines.append("none of its jobs is dead or waits for a retry") }
        return lines
    }
}
