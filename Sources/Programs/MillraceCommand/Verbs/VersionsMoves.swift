import MillraceQueues
import Postgres

/// What operators do with builds.
extension Command {
    static let versionsPromote = Command(
        ["versions", "promote"],
        summary: "Give new jobs to a build",
        discussion: """
            New jobs of the kinds that this build knows go to its workers from now on; with --percent, only that share of them, and the \
            others go where they went before. It is for workers with --only-build. Jobs under way stay with the build that began them.
            """,
        arguments: [Argument("build", .one, help: "the build, as its workers say it")],
        flags: [.single("percent", "N", .integer(1...99), help: "Only this percentage of new jobs.")],
        examples: [
            Example("millrace versions promote 7f3a", "all new jobs"),
            Example("millrace versions promote 7f3a --percent 10", "a tenth of them"),
        ]
    ) { invocation in
        let build = invocation.parsed.string("build") ?? ""
        let percent = invocation.parsed.integer("percent")
        try await invocation.withBuild { try await Queue.promote(build, percent: percent, on: $0) }
        invocation.console.show(["build": .string(build), "percent": JSONValue(percent)]) {
            let share = percent.map { "\($0) of a hundred new jobs go" } ?? "new jobs go"
            invocation.console.print("\(share) to build \(build)")
        }
        return .done
    }

    static let versionsDrain = Command(
        ["versions", "drain"],
        summary: "Give no new jobs to a build; it finishes those that it began",
        arguments: [Argument("build", .one, help: "the build, as its workers say it")],
        examples: [Example("millrace versions drain 7f3a", "before its last worker is stopped")]
    ) { invocation in
        let build = invocation.parsed.string("build") ?? ""
        let (isNew, left) = try await invocation.withBuild { connection in
            let isNew = try await Queue.drain(build: build, on: connection)
            let row = try await Queue.builds(on: connection).first { $0.build == build }
            return (isNew, (row?.ready ?? 0) + (row?.waiting ?? 0))
        }
        invocation.console.show([
            "build": .string(build), "drained": .bool(true), "changed": .bool(isNew), "jobs": .int(left),
        ]) {
            let jobs = left == 0 ? "none waits for it" : "\(Humane.count(left, "job")) wait for it"
            invocation.console.print("build \(build) gets no new jobs; of those under way \(jobs)")
        }
        return .done
    }

    static let versionsRollback = Command(
        ["versions", "rollback"],
        summary: "Undo the last promotion",
        discussion: """
            A build that gets a percentage no longer gets new jobs; otherwise the build that was promoted last no longer does, and they go to the one before. \
            Jobs that the bad build has not started go too, within seconds. Those under way stay with it, unless --move says that the earlier build \
            knows their steps.
            """,
        flags: [.toggle("move", environment: .none, help: "The earlier build goes on with the jobs under way, too.")],
        examples: [Example("millrace versions rollback", "new jobs go to the build before")]
    ) { invocation in
        let move = invocation.parsed.isOn("move")
        let (bad, good) = try await invocation.withBuild { try await Queue.rollback(move: move, on: $0) }
        invocation.console.show(["from": .string(bad), "to": .string(good), "moved": .bool(move)]) {
            invocation.console.print(
                "new jobs go to build \(good), and none to \(bad)"
                    + (move ? "; jobs under way move too" : ""))
        }
        return .done
    }

    static let versionsRelease = Command(
        ["versions", "release"],
        summary: "Let another build go on with a build's jobs under way",
        discussion: """
            For a build whose workers are gone. Without --to, the build that gets new jobs goes on with them. Its code must know the steps that are \
            on record: see millrace jobs show.
            """,
        arguments: [Argument("build", .one, help: "the build that is gone")],
        flags: [.single("to", "BUILD", help: "The build that goes on with its jobs.")],
        examples: [
            Example("millrace versions release 7f3a", "to the build that gets new jobs"),
            Example("millrace versions release 7f3a --to 81c2", "to a certain one"),
        ]
    ) { invocation in
        let build = invocation.parsed.string("build") ?? ""
        let heir = invocation.parsed.string("to")
        try await invocation.withBuild { try await Queue.release(build: build, to: heir, on: $0) }
        invocation.console.show(["build": .string(build), "to": JSONValue(heir)]) {
            invocation.console.print(
                "\(heir.map { "build \($0)" } ?? "the build that gets new jobs") goes on with the jobs of build \(build)"
            )
        }
        return .done
    }

    static let versionsChanges = Command(
        ["versions", "changes"],
        summary: "List the changes that handlers ask for, and how many jobs still go the old way",
        discussion: "When no job goes the old way, it can be deleted from the handler, together with context.changed.",
        examples: [Example("millrace versions changes", "which old ways can be deleted")]
    ) { invocation in
        let changes = try await invocation.withSchema { try await Queue.changes(on: $0) }
        invocation.console.list("changes", changes.map(\.json), table: ChangeRow.table(changes))
        return .done
    }
}

extension Invocation {
    /// A refusal says what to do.
    fileprivate func withBuild<Value: Sendable>(
        _ body: @Sendable (Connection) async throws -> Value
    ) async throws -> Value {
        try await withSchema { connection in
            do {
                return try await body(connection)
            } catch let error as PostgresError where error.sqlState == "P0002" {
                throw Failure(
                    .notFound, DatabaseFailure(error).sentence,
                    hint: "millrace versions list shows those that are known"
                )
            }
        }
    }
}

extension BuildRow {
    var json: JSONValue {
        [
            "build": .string(build), "state": .string(state), "percent": JSONValue(percent), "workers": .int(workers),
            "kinds": JSONValue(kinds), "ready": .int(ready), "waiting": .int(waiting), "stranded": .bool(isStranded),
            "seen_at": JSONValue(seenAt), "promoted_at": JSONValue(promotedAt), "drained_at": JSONValue(drainedAt),
            "heir": JSONValue(heir),
        ]
    }

    static func table(_ builds: [BuildRow]) -> Table {
        var table = Table(
            [
                Table.Column("build", shrinks: true, importance: .key), Table.Column("state", importance: .high),
                Table.Column("workers", .trailing, importance: .high), Table.Column("ready", .trailing),
                Table.Column("waiting", .trailing), Table.Column("promoted"),
            ], whenEmpty: "no worker has --only-build")
        for row in builds {
            let state =
                row.percent.map { "\(row.state) \($0) %" } ?? row.heir.map { "\(row.state) to \($0)" } ?? row.state
            table.add([
                Table.Cell(row.build, .bold), Table.Cell(state, row.state == "promoted" ? .green : .plain),
                Table.Cell("\(row.workers)", row.isStranded ? .red : .plain), Table.Cell(Humane.count(row.ready)),
                Table.Cell(Humane.count(row.waiting)), Table.Cell(row.promotedAt.map(InstantText.spell) ?? "-"),
            ])
        }
        return table
    }
}

extension ChangeRow {
    var json: JSONValue {
        [
            "kind": .string(kind), "change": .string(change), "builds": JSONValue(builds), "since": JSONValue(since),
            "old_way": .int(oldWay),
        ]
    }

    static func table(_ changes: [ChangeRow]) -> Table {
        var table = Table(
            [
                Table.Column("kind", shrinks: true, importance: .key), Table.Column("change", importance: .key),
                Table.Column("since"), Table.Column("old way", .trailing, importance: .high),
                Table.Column("builds", shrinks: true),
            ], whenEmpty: "no handler has asked for a change")
        for row in changes {
            table.add([
                Table.Cell(row.kind), Table.Cell(row.change, .bold), Table.Cell(InstantText.spell(row.since)),
                Table.Cell(row.oldWay >= 1000 ? "1000 or more" : "\(row.oldWay)"),
                Table.Cell(row.builds.joined(separator: ", "), .dim),
            ])
        }
        return table
    }
}
