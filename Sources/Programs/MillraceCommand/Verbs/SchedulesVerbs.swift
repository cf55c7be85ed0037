import MillraceQueues
import Postgres

extension Command {
    static let schedulesList = Command(
        ["schedules", "list"],
        summary: "List the schedules, those with a problem first",
        examples: [Example("millrace schedules list", "next and last times, what was missed")]
    ) { invocation in
        let schedules = try await invocation.withSchema { try await Queue.schedules(on: $0) }
        invocation.console.list("schedules", schedules.map(\.json), table: ScheduleRow.table(schedules))
        return .done
    }

    static let schedulesShow = Command(
        ["schedules", "show"],
        summary: "Show everything about a schedule, and the results of its latest times",
        arguments: [Argument("name", .one, .scheduleName, help: "the schedule's name")],
        flags: [
            .single("limit", "N", .integer(0...10_000), fallback: "10", help: "Show this many of its latest times.")
        ],
        examples: [Example("millrace schedules show nightly --limit 50", "fired, skipped, missed")]
    ) { invocation in
        let name = invocation.parsed.string("name") ?? ""
        let limit = invocation.parsed.integer("limit") ?? 10
        let (schedule, fires) = try await invocation.withSchema { connection in
            (
                try await Invocation.schedule(name, on: connection),
                try await Queue.fires(of: name, limit: limit, on: connection)
            )
        }
        guard case .object(let members) = schedule.json else { return .failed }
        invocation.console.show(.object(members + [.init(key: "fires", value: .array(fires.map(\.json)))])) {
            for line in schedule.lines(fires) { invocation.console.print(line) }
        }
        return .done
    }

    static let schedulesRemove = Command(
        ["schedules", "remove"],
        summary: "Remove schedules; the jobs they have enqueued stay",
        arguments: [Argument("name", .many, .scheduleName, help: "the schedules' names")],
        examples: [Example("millrace schedules remove nightly", "no more fires")]
    ) { invocation in
        try await invocation.eachSchedule { name, connection in
            try await Queue.removeSchedule(name, on: connection)
            return (true, "removed")
        }
    }

    static let schedulesPause = Command(
        ["schedules", "pause"],
        summary: "Stop firing until resumed; times during the pause are not caught up",
        arguments: [Argument("name", .many, .scheduleName, help: "the schedules' names")],
        examples: [Example("millrace schedules pause nightly", "one schedule")]
    ) { invocation in
        try await invocation.eachSchedule { name, connection in
            let changed = try await Queue.pauseSchedule(name, on: connection)
            return (changed, changed ? "paused" : "paused already")
        }
    }

    static let schedulesResume = Command(
        ["schedules", "resume"],
        summary: "Resume paused schedules, from their next time on",
        arguments: [Argument("name", .many, .scheduleName, help: "the schedules' names")],
        examples: [Example("millrace schedules resume nightly", "one schedule")]
    ) { invocation in
        try await invocation.eachSchedule { name, connection in
            let changed = try await Queue.resumeSchedule(name, on: connection)
            return (changed, changed ? "resumed" : "not paused")
        }
    }

    static let schedulesRun = Command(
        ["schedules", "run"],
        summary: "Enqueue a schedule's job now, even if it is paused; its planned times stay",
        discussion: "The job's id is printed. It is recorded as fired by hand, and its metadata say so.",
        arguments: [Argument("name", .one, .scheduleName, help: "the schedule's name")],
        examples: [Example("millrace schedules run nightly", "once more, by hand")]
    ) { invocation in
        let name = invocation.parsed.string("name") ?? ""
        let id = try await invocation.acting(on: .schedule, [name]) { connection throws(PostgresError) in
            try await Queue.runSchedule(name, on: connection)
        }
        invocation.console.show(["schedule": .string(name), "job": .int(Int(id))]) {
            invocation.console.print("\(id)")
        }
        return .done
    }
}

extension Invocation {
    static func schedule(_ name: String, on connection: Connection) async throws -> ScheduleRow {
        guard let schedule = try await Queue.schedules(named: name, on: connection).first else {
            throw Failure(
                .notFound, "there is no schedule \(name)", hint: "millrace schedules list shows them all")
        }
        return schedule
    }

    fileprivate func eachSchedule(
        _ act: @escaping @Sendable (String, Connection) async throws -> (changed: Bool, word: String)
    ) async throws -> ExitCode {
        let names = parsed.list("name")
        let items = try await withSchema { connection in
            if let unknown = try await Self.unknown(.schedule, names, on: connection) { throw unknown }
            var items: [JSONValue] = []
            for name in names {
                let (changed, word) = try await act(name, connection)
                items.append(["schedule": .string(name), "changed": .bool(changed)])
                // At once: should the next one fail, this one still has changed.
                if console.format == .human { console.print("\(name): \(word)") }
            }
            return items
        }
        if console.format != .human { console.list("schedules", items, table: Table([])) }
        return .done
    }
}
