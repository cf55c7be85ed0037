package import CommandKit
import Glibc
import LoadKit
import Postgres
import Synchronization
import Telemetry
import Workers

extension Command {
    package static let loadGatewayStreams = scenario(
        "gateway-streams",
        summary: "Open ten thousand streams of changes on one gateway, and see that each client gets each change once",
        discussion: """
            Starts a Postgres, a gateway and a worker of its own, opens streams for as many people, and commits changes at a steady rate \
            while the worker works. It prints the gateway's memory, what open streams cost while nothing happens, and the time from a \
            commit to the arrival at the client. With --faults the clients go through nginx, if it is installed; then the gateway is killed, Postgres \
            crashes and starts again, and nginx reloads. The clients come back with the id of their last event. At the end every client must \
            have seen what the database has for its person: all, once, in order. Needs two file descriptors for each stream.
            """,
        flags: [
            .count("streams", 10...14_000, 10_000, "Open streams."),
            .count("rate", 1...5000, 200, "Changes a second."),
            .count("jobs", 1...5000, 200, "Jobs a second for the worker beside."),
            .count("seconds", 2...86_400, 30, "How long to measure, and how long after each fault."),
            .toggle("faults", environment: .none, help: "Kill the gateway, restart Postgres, reload the proxy."),
            .single(
                "client", "FILE", environment: .none, hidden: true,
                help: "A program that follows some streams, too; see deploy/checks/streams."),
        ],
        examples: [
            Example("millrace load gateway-streams", "ten thousand streams"),
            Example("millrace load gateway-streams --streams 1000 --seconds 10 --faults", "a look, with faults"),
        ]
    ) { invocation in
        try await GatewayStreamsScenario(invocation: invocation).run()
    }
}

private struct GatewayStreamsScenario: Sendable {
    let invocation: Invocation

    private var streams: Int { invocation.count("streams") }
    private var span: Duration { .seconds(invocation.count("seconds")) }
    private var hasFaults: Bool { invocation.parsed.isOn("faults") }

    func run() async throws -> ExitCode {
        if hasFaults, StreamWorld.nginx == nil {
            invocation.console.note("nginx is not installed: no proxy stands between, and none is reloaded")
        }
        return try await measure(
            try await StreamWorld.opened(invocation, hasProxy: hasFaults && StreamWorld.nginx != nil))
    }

    private func measure(_ world: StreamWorld) async throws -> ExitCode {
        let live = invocation.console.live()
        let connection = try await Connection.open(world.options, name: "load")
        let workers = try await LoadWorkers.start(1, world.inside, arguments: ["--slots", "20"], on: connection)
        await connection.close()
        let before = try resident(world)
        let fleet = StreamFleet(port: world.port) { world.token($0) }
        let began = ContinuousClock.now
        fleet.start(streams, threads: 2)
        try await fleet.opened(streams, live, within: .seconds(300))
        let opening = began.duration(to: .now) / .seconds(1)
        let open = try resident(world)
        let calm = min(span, .seconds(10))
        live.update(["\(Humane.count(streams)) streams are open; nothing happens for \(Humane.duration(calm))"])
        let idle = try await idleShare(world, over: calm)
        let other = try invocation.parsed.string("client").map { try OtherClient($0, world, people: min(streams, 50)) }
        let isOver = Mutex(false)
        async let committed = world.commit(
            people: streams, perSecond: invocation.count("rate"),
            jobsPerSecond: invocation.count("jobs")
        ) { isOver.withLock { $0 } }
        try await pass(span, fleet, live, "measuring")
        let most = try resident(world)
        fleet.endCalm()
        try await pass(.seconds(2), fleet, live, "measured")
        var faults: [String] = []
        if hasFaults { faults = try await cause(world, fleet, live) }
        isOver.withLock { $0 = true }
        let events = await committed
        let (missed, expected, results) = try await judge(world, fleet, other, live)
        live.update([])
        try await workers.stop()
        let told = [
            "opened \(Humane.count(streams)) streams in \(Humane.decimal(opening, places: 1)) s; \(Humane.count(fleet.counts.connects)) connections, \(Humane.count(fleet.counts.refused)) refused, \(Humane.count(fleet.counts.ended)) ended",
            "commit to arrival: \(results.calm.summary)" + (hasFaults ? "; with faults \(results.all.summary)" : ""),
            "the gateway had \(Humane.decimal(before, places: 1)) MB before, \(Humane.decimal(open, places: 1)) MB with all streams, \(Humane.decimal(most, places: 1)) MB under load",
        ]
        for line in told { invocation.console.print(line) }
        for fault in faults { invocation.console.print(fault) }
        let each = max(0, open - before) * 1024 / Double(streams)
        let bars: [Bar] = [
            .atMost(
                "memory of a gateway with \(Humane.count(streams)) streams", 600, measured: max(open, most), unit: "MB"),
            .atMost("memory of one open stream", 60, measured: each, unit: "KB"),
            .atMost(
                "an event is there after its commit, p99", 200, measured: results.calm.milliseconds(at: 0.99),
                unit: "ms"),
            .atMost("processor of open streams while nothing happens", 10, measured: idle, unit: "% of a core"),
            .atMost(
                "clients that missed a change, or had one twice or out of order", 0, measured: Double(missed),
                unit: "clients"),
            .atLeast(
                "changes that reached their client", Double(expected), measured: Double(fleet.counts.events),
                unit: "changes"),
        ]
        return invocation.report(
            "gateway-streams", bars,
            figures: [
                ("streams", .int(streams)), ("events", .int(events)), ("opening_s", .double(opening)),
                ("connections", .int(fleet.counts.connects)), ("resets", .int(fleet.counts.resets)),
                ("rss_before_mb", .double(before)), ("rss_open_mb", .double(open)), ("rss_most_mb", .double(most)),
                ("arrival", results.calm.json), ("arrival_with_faults", results.all.json),
            ])
    }

    private func resident(_ world: StreamWorld) throws -> Double {
        guard let pid = world.kept.pid(of: "gateway") else { throw Failure("the gateway is gone") }
        return Double(ProcessTable.resident(of: pid).now) / 1_048_576
    }

    private func pass(_ span: Duration, _ fleet: StreamFleet, _ live: LiveRegion, _ what: String) async throws {
        let end = ContinuousClock.now + span
        while ContinuousClock.now < end {
            live.update([
                "\(what): \(Humane.count(fleet.counts.events)) events, \(Humane.count(fleet.counts.ready)) streams"
            ])
            try await Task.sleep(for: .milliseconds(250))
        }
    }

    /// Of one core.
    private func idleShare(_ world: StreamWorld, over calm: Duration) async throws -> Double {
        guard let pid = world.kept.pid(of: "gateway"), let before = ProcessTable.ticks(of: pid) else { return 0 }
        try await Task.sleep(for: calm)
        guard let after = ProcessTable.ticks(of: pid) else { return 0 }
        return (after.own - before.own) / ProcessTable.ticksPerSecond / (calm / .seconds(1)) * 100
    }

    private func cause(_ world: StreamWorld, _ fleet: StreamFleet, _ live: LiveRegion) async throws -> [String] {
        var told: [String] = []
        func fault(_ name: String, _ strike: () async throws -> Void) async throws {
            let connects = fleet.counts.connects
            let began = ContinuousClock.now
            try await strike()
            // Until streams have ended, or the fault has ended none.
            let patience = ContinuousClock.now + .seconds(3)
            while fleet.counts.ready == streams, ContinuousClock.now < patience {
                try await Task.sleep(for: .milliseconds(20))
            }
            try await fleet.opened(streams, live, within: .seconds(120))
            let took = began.duration(to: .now) / .seconds(1)
            told.append(
                "\(name): \(Humane.count(fleet.counts.connects - connects)) connections again, all streams open after \(Humane.decimal(took, places: 1)) s"
            )
            try await pass(span, fleet, live, "after: \(name)")
        }
        try await fault("the gateway was killed") { world.killGateway() }
        try await fault("Postgres crashed and started again") { try await world.restartPostgres() }
        if world.port != world.gatewayPort { try await fault("nginx reloaded") { world.reloadProxy() } }
        return told
    }

    /// Compares what each client has seen with the database: how many clients are wrong, how many changes there were.
    private func judge(
        _ world: StreamWorld, _ fleet: StreamFleet, _ other: OtherClient?, _ live: LiveRegion
    ) async throws -> (Int, Int, StreamFleet.Results) {
        live.update(["waiting for the last changes"])
        let connection = try await Connection.open(world.options, name: "load")
        // Another reader may be numbering the last ones.
        while try await connection.query(
            "select exists (select from millrace.feed where seq is null)",
            decode: { row throws(PostgresError) in try row.bool(0) }
        ).first == true {
            try await Task.sleep(for: .milliseconds(50))
        }
        let rows = try await connection.query(
            "select split_part(person, '-', 2)::int, seq from millrace.feed where person like 'person-%' and seq is not null order by seq",
            deadline: .seconds(120)
        ) { row throws(PostgresError) in (person: Int(try row.int(0)), seq: try row.int(1)) }
        await connection.close()
        _ = try await Patience.waited(.seconds(30)) { fleet.counts.events >= rows.count }
        let results = try await fleet.stop()
        var of: [Int: [Int64]] = [:]
        for row in rows { of[row.person, default: []].append(row.seq) }
        var missed = 0
        let others = try await other?.stop() ?? []
        if other != nil { invocation.console.print("\(others.count) streams were followed by another client, too") }
        for seen in results.seen + others {
            let wanted = (of[seen.person] ?? []).filter { $0 > (seen.start ?? .max) }
            guard seen.start == nil || seen.seqs != wanted else { continue }
            missed += 1
            guard missed <= 5 else { continue }
            let (has, had) = (Set(seen.seqs), Set(wanted))
            invocation.console.print(
                "person-\(seen.person), from \(seen.start ?? -1): lacks \(had.subtracting(has).sorted()), has \(has.subtracting(had).sorted()) too many, \(seen.seqs.count - has.count) twice"
            )
        }
        return (missed, rows.count, results)
    }
}
