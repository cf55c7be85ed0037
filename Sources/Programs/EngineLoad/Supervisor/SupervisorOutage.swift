import Clusters
import CommandKit
import Glibc
import LoadKit
import Postgres
import Supervision

/// Six processes and a provider to which everything happens in turn.
struct SupervisorOutage: Sendable {
    let world: SupervisorWorld
    let console: Console

    private static let members = 6
    private static let probes = 2
    private static let settings = [
        "MILLRACE_BREAKER_OPEN": "2s", "MILLRACE_BREAKER_WINDOW": "10s", "MILLRACE_BREAKER_PROBES": "\(probes)",
    ]

    func run() async throws -> [Bar] {
        world.provider.script { $0.latency = .milliseconds(150) }
        let connection = try await world.connect()
        let members = try (1...Self.members).map {
            try world.start("worker-\($0)", port: world.provider.port, rate: 20, Self.settings)
        }
        defer { for member in members { member.kill() } }
        try await come("all processes call", within: .seconds(60)) {
            try await count("select count(*) from millrace.provider_seen where ok >= 20", connection) == Self.members
        }
        var bars = try await failForAll(connection)
        bars += try await comeBack(connection)
        // One more process, which is cut off from the provider: nobody listens at its port.
        let broken = try world.start("cut-off", port: 1, rate: 20, Self.settings)
        bars.append(try await oneAlone(connection))
        broken.kill()
        bars += try await badKey(connection)
        bars += try await withoutPostgres(connection)
        return bars
    }

    private func failForAll(_ connection: Connection) async throws -> [Bar] {
        console.note("the provider fails for all")
        world.provider.script { $0.status = 503 }
        let began = Moment.now
        try await come("the fleet opens") { try await state(connection) != "closed" }
        let opened = Moment.now - began
        // Calls under way end, and every process hears of the state.
        try await Task.sleep(for: .milliseconds(500))
        let quiet = Moment.now
        try await Task.sleep(for: .seconds(8))
        let seen = world.provider.requests(since: quiet)
        let turns = try await count(
            "select count(*) from millrace.provider_event where to_state = 'probing'", connection)
        return [
            .atMost("it fails for all: opened for all within", 2, measured: opened.inSeconds, unit: "s"),
            .atMost(
                "calls that reached it in the next 8 s, with \(turns) rounds of \(Self.probes) probes",
                Double(turns * Self.probes), measured: Double(seen), unit: "calls"),
        ]
    }

    private func comeBack(_ connection: Connection) async throws -> [Bar] {
        console.note("the provider comes back")
        world.provider.script { $0.status = 200 }
        try await come("it is found well", within: .seconds(60)) { try await state(connection) == "ramping" }
        let began = Moment.now
        try await come("all traffic is back", within: .seconds(60)) { try await state(connection) == "closed" }
        let ramp = Moment.now - began
        let requests = world.provider.requests.filter { $0.ended >= began }
        // At most what the step allows in each process; a process may be a moment ahead of our observation.
        var worst = 0.0
        var perSecond = [Int](repeating: 0, count: Ramp.steps.count)
        for request in requests {
            let at = request.began - began
            guard at < ramp, at >= .zero else { continue }
            let step = min(Ramp.steps.count - 1, Int((at + .milliseconds(200)).inSeconds))
            let atOnce = requests.count { $0.began <= request.began && $0.ended > request.began }
            worst = max(worst, Double(atOnce) / Double(Ramp.steps[step].atOnce * Self.members))
            perSecond[min(perSecond.count - 1, Int(at.inSeconds))] += 1
        }
        console.note("calls in each second of the ramp: \(perSecond.map(String.init).joined(separator: ", "))")
        let full = Double(20 * Self.members)
        return [
            .atMost("it comes back: calls at once, as a share of what the ramp allows", 1, measured: worst, unit: "×"),
            .atMost(
                "calls in the first second of the ramp, of those there would be", 0.2,
                measured: Double(perSecond[0]) / full, unit: "×"),
        ]
    }

    private func oneAlone(_ connection: Connection) async throws -> Bar {
        console.note("one process has no way to the provider")
        try await come("its own breaker opens") {
            try await count(
                "select count(*) from millrace.provider_workers('scripted') where vote is not null and worker = 'cut-off'",
                connection) == 1
        }
        let from = Moment.now
        try await Task.sleep(for: .seconds(3))
        let others = try await count(
            "select count(*) from millrace.provider_workers('scripted') where vote is not null and worker <> 'cut-off'",
            connection)
        let isOpen = try await state(connection) != "closed"
        console.note("meanwhile \(world.provider.requests(since: from)) calls of the others")
        return .atMost(
            "one process cut off: others that opened", 0, measured: Double(others) + (isOpen ? 1 : 0), unit: "processes"
        )
    }

    private func badKey(_ connection: Connection) async throws -> [Bar] {
        console.note("the provider refuses the key")
        world.provider.script { $0.status = 401 }
        let began = Moment.now
        try await come("it opens") { try await state(connection) == "open" }
        let opened = Moment.now - began
        try await Task.sleep(for: .milliseconds(400))
        let quiet = Moment.now
        try await Task.sleep(for: .milliseconds(800))
        let seen = world.provider.requests(since: quiet)
        let reason = try await text(
            "select reason from millrace.providers where provider = 'scripted' and state = 'open'", connection)
        console.note("the reason: \(reason ?? "none")")
        world.provider.script { $0.status = 200 }
        _ = try await Providers.force(
            "scripted", class: "*", to: "auto", reason: "a new key", for: .seconds(60), on: connection)
        return [
            .atMost("a bad key: opened for all within", 1, measured: opened.inSeconds, unit: "s"),
            .atMost("calls that reached it afterwards", 0, measured: Double(seen), unit: "calls"),
            .atLeast(
                "the reason names it", 1, measured: reason?.hasPrefix("authentication") == true ? 1 : 0, unit: "of 1"),
        ]
    }

    private func withoutPostgres(_ connection: Connection) async throws -> [Bar] {
        try await come("calls go on") { try await state(connection) == "closed" }
        try await Task.sleep(for: .seconds(1))
        console.note("Postgres is stopped")
        await connection.close()
        try await world.cluster.close(.immediate)
        var from = Moment.now
        try await Task.sleep(for: .seconds(5))
        let going = Double(world.provider.requests(since: from)) / (5 * 20 * Double(Self.members))
        world.provider.script { $0.status = 503 }
        try await Task.sleep(for: .milliseconds(1200))
        from = Moment.now
        try await Task.sleep(for: .milliseconds(300))
        let shut = world.provider.requests(since: from)
        world.provider.script { $0.status = 200 }
        let back = try await Patience.time(.seconds(60)) {
            let now = Moment.now
            return world.provider.requests(since: now + .seconds(-1)) > 20 * Self.members / 2
        }
        try await world.cluster.open()
        let again = try await world.connect()
        let agreed = try await Patience.time(.seconds(30)) {
            try await count(
                "select count(*) from millrace.provider_seen where seen_at > millrace.now() - interval '2 s' and ok > 0 and vote is null",
                again) == Self.members
        }
        let closed = try await Patience.time(.seconds(30)) {
            try await state(again) == "closed"
        }
        await again.close()
        return [
            .atLeast("Postgres stopped: calls that go on, as a share", 0.8, measured: going, unit: "×"),
            .atMost(
                "the provider fails meanwhile: calls after a second, in 0.3 s", 0, measured: Double(shut), unit: "calls"
            ),
            .atMost(
                "it comes back, still without Postgres: half of all calls again after", 30,
                measured: back?.inSeconds ?? .infinity, unit: "s"),
            .atMost(
                "Postgres back: all processes agree again after", 15,
                measured: closed == nil ? .infinity : agreed?.inSeconds ?? .infinity, unit: "s"),
        ]
    }

    private func come(_ what: String, within limit: Duration = .seconds(30), _ condition: () async throws -> Bool)
        async throws
    {
        try await Patience.wait(
            limit, every: .milliseconds(5), else: "this did not come about: \(what)", until: condition)
    }

    private func state(_ connection: Connection) async throws -> String? {
        try await text(
            "select state from millrace.providers where provider = 'scripted' and class = 'default'", connection)
    }

    private func text(_ sql: SQL, _ connection: Connection) async throws -> String? {
        try await connection.query(sql) { row throws(PostgresError) in row.optionalString(0) }.first ?? nil
    }

    private func count(_ sql: SQL, _ connection: Connection) async throws -> Int {
        try await connection.int(sql)
    }
}
