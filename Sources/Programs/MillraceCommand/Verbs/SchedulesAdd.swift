import FoundationEssentials
import MillraceJobs
import MillraceQueues
import Postgres

extension Command {
    static let schedulesAdd = Command(
        ["schedules", "add"],
        summary: "Create a schedule, or change the one with this name",
        discussion: """
            The expression is cron's five fields (minute, hour, day of month, month, day of week; six with seconds in front), \
            with names, ranges, lists, steps, L (the last day), friL (the last Friday) and mon#2 (the second Monday); a word \
            such as @daily or @hourly; or an interval such as every 15m. If both the day of month and the day of week are \
            restricted, either suffices. Quote it, or the shell takes the asterisks. All workers follow at once. What is not \
            given gets its default, even if the schedule existed before; only a pause stays.
            """,
        arguments: [
            Argument("name", .one, .scheduleName, help: "the schedule's name"),
            Argument("expression", .one, .timetable, help: "when, in quotes"),
            Argument("kind", .one, .kindName, help: "the kind of its jobs"),
            Argument("args", .optional, help: "JSON, @file, or - for standard input"),
        ],
        flags: [
            .single("zone", "NAME", .zone, fallback: "UTC", help: "The time zone whose clocks count."),
            .single(
                "catch-up", "WHAT", .choice(["none", "latest", "all"]), fallback: "latest",
                help: "Which times that passed while no worker was running are caught up: none, the latest, or all."),
            .single(
                "catch-up-limit", "N", .integer(1...10_000), fallback: "1000", help: "With all: at most the newest N."),
            .single(
                "overlap", "WHAT", .choice(Schedule.Overlap.allCases.map(\.rawValue)), fallback: "allow",
                help: "While its last job has not ended: allow another, skip the time, or replace (cancel) the last."),
            .single(
                "jitter", "DURATION", .duration(.zero ... .days(1)), fallback: "0s",
                help: "Each job runs up to this much later."),
            .single("queue", "NAME", .queueName, help: "The queue of its jobs; the kind's own if not given."),
            .single("priority", "N", .integer(0...9), help: "0 is first, 9 last; 4 if not given."),
            .single("tenant", "NAME", help: "The tenant its jobs belong to."),
            .single("anchor", "TIME", .instant, environment: .none, help: "The start of an interval's counting."),
            .toggle("paused", environment: .none, help: "Create it paused; --no-paused resumes it."),
        ],
        examples: [
            Example("millrace schedules add nightly '0 2 * * *' report.build --zone Europe/Berlin", "every night"),
            Example("millrace schedules add poll 'every 90s' feed.poll '{\"n\":1}' --overlap skip", "an interval"),
            Example(
                "millrace schedules add bill '0 6 L * *' invoice.run --catch-up all --jitter 5m", "each month's last"),
        ]
    ) { invocation in
        let schedule = try invocation.newSchedule()
        let (change, row) = try await invocation.withSchema { connection in
            let change = try await Queue.setSchedule(schedule, on: connection)
            return (change, try await Queue.schedules(named: schedule.name, on: connection).first)
        }
        invocation.console.show([
            "change": .string(change.rawValue), "schedule": row?.json ?? .null,
        ]) {
            invocation.console.print("\(schedule.name): \(change.rawValue)")
        }
        if row?.pausedAt != nil { invocation.console.note("it is paused: millrace schedules resume \(schedule.name)") }
        return .done
    }
}

extension Invocation {
    fileprivate func newSchedule() throws -> Schedule {
        var schedule = Schedule(
            parsed.string("name") ?? "", parsed.string("expression") ?? "", zone: parsed.string("zone") ?? "UTC",
            kind: parsed.string("kind") ?? "", args: try arguments())
        if let word = parsed.string("catch-up"),
            let catchUp = Schedule.CatchUp(word, limit: parsed.integer("catch-up-limit") ?? 1000)
        {
            schedule.catchUp = catchUp
        }
        schedule.overlap = parsed.string("overlap").flatMap(Schedule.Overlap.init) ?? .allow
        schedule.jitter = parsed.duration("jitter") ?? .zero
        schedule.queue = parsed.string("queue")
        schedule.priority = parsed.integer("priority")
        schedule.tenant = parsed.string("tenant")
        schedule.anchor = try parsed.string("anchor").map { text in try InstantText.read(text) }
        if parsed.origin("paused") != nil { schedule.isPaused = parsed.isOn("paused") }
        return schedule
    }
}
