package import CommandKit
import LoadKit
import Postgres
import Supervision

extension Command {
    package static let loadSupervisor = scenario(
        "supervisor",
        summary: "Show how a fleet treats a provider that fails, comes back, refuses, and limits its pace",
        discussion: """
            cost measures what asking and recording add to a call. outage starts a Postgres, a scripted provider and \
            six processes with 20 calls a second each: the provider fails for all, recovers, is out of reach for one \
            process alone, and refuses the key; then Postgres is stopped in the middle. pace has four processes call \
            a provider that allows ten calls a second and says so in its headers. No database is needed.
            """,
        flags: [
            .single(
                "part", "NAME", .choice(["all", "cost", "outage", "pace"]), environment: .none, fallback: "all",
                help: "Which part to run."),
            .count("seconds", 3...3600, 120, "How long pace runs."),
            .count("calls", 1000...100_000_000, 1_000_000, "How many calls the part cost makes."),
            .single(
                "member", "PORT", .integer(1...65_535), environment: .none, hidden: true,
                help: "Run as one of the processes."),
            .single("name", "NAME", environment: .none, hidden: true, help: "The name of the process."),
            .single(
                "rate", "N", .integer(0...10_000), environment: .none, fallback: "0", hidden: true,
                help: "Calls a second."),
            .single(
                "loops", "N", .integer(0...1000), environment: .none, fallback: "0", hidden: true,
                help: "How many loops make calls."),
            .single(
                "parent", "PID", .integer(0...Int(Int32.max)), environment: .none, hidden: true,
                help: "Ends when this process ends."),
        ],
        examples: [
            Example("millrace load supervisor", "all of it, about three minutes"),
            Example("millrace load supervisor --part pace --seconds 20", "ten calls a second by four processes"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        if let port = parsed.integer("member") {
            invocation.dieWithParent(parsed.integer("parent") ?? 0)
            var options = invocation.settings.supervision
            options.database = try invocation.connectionOptions()
            options.name = parsed.string("name") ?? "member"
            let member = SupervisorMember(
                supervisor: Supervisor(options, log: invocation.settings.log), port: UInt16(port))
            await member.run(rate: parsed.integer("rate") ?? 0, loops: parsed.integer("loops") ?? 0)
            return .done
        }
        let part = parsed.string("part") ?? "all"
        var bars: [Bar] = []
        var figures: [(String, JSONValue)] = []
        if part == "all" || part == "cost" {
            try await SupervisorCost(calls: invocation.count("calls")).run(&bars, &figures)
        }
        if part == "all" || part == "outage" {
            let world = try await SupervisorWorld(invocation)
            bars += try await SupervisorOutage(world: world, console: invocation.console).run()
            await world.close()
        }
        if part == "all" || part == "pace" {
            let world = try await SupervisorWorld(invocation)
            let seconds = invocation.count("seconds")
            bars += try await SupervisorPace(world: world, seconds: seconds, console: invocation.console).run()
            await world.close()
        }
        return invocation.report("supervisor", bars, figures: figures)
    }
}
