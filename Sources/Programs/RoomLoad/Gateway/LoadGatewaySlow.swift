package import CommandKit
import Glibc
import LoadKit
import MillraceQueues
import Postgres
import Synchronization
import Telemetry
import Workers

extension Command {
    package static let loadGatewaySlow = scenario(
        "gateway-slow",
        summary: "Measure what slow readers and idle connections of a gateway cost jobs",
        discussion: """
            A worker drains jobs, and starts jobs that come at a steady rate, beside a gateway in its own process: in turn without \
            clients, and with thousands of connections that say nothing, send a request a byte at a time, or stay after one call, \
            and with streams that are hardly read while much happens. What the gateway cuts comes again. Events are made all the \
            time. An ordinary caller must be served meanwhile.
            """,
        flags: [
            .count("idle", 0...50_000, 5000, "Connections that do next to nothing."),
            .count("slow", 0...5000, 300, "Streams that are hardly read."),
            .count("rounds", 1...25, 3, "Drains with and without them."),
            .count("drain", 1000...10_000_000, 100_000, "Jobs of each drain."),
            .count("seconds", 5...600, 15, "Of steady jobs, each time."),
            Setting.slots.flag,
        ],
        examples: [
            Example("millrace load gateway-slow", "5,000 idle connections and 300 slow readers"),
            Example("millrace load gateway-slow --idle 200 --slow 20 --rounds 1 --drain 20000", "a look"),
        ]
    ) { invocation in
        try await GatewaySlowScenario(invocation: invocation).run()
    }
}

private struct GatewaySlowScenario: Sendable {
    let invocation: Invocation

    private var idle: Int { invocation.count("idle") }
    private var slow: Int { invocation.count("slow") }
    private static let people = (0..<50).map { "slow-\($0)" }
    private static let rate = 100

    /// With nobody there, or with all of them.
    private struct Side: Sendable {
        var rates: [Double] = []
        var pickUps: [Double] = []
        var calls: [Double] = []
    }

    func run() async throws -> ExitCode {
        Self.raiseDescriptors()
        let connection = try await invocation.connect()
        let ground = try await GatewayGround.make(invocation, on: connection)
        let gateway = try await GatewayProcess.start(ground, environment: UnlimitedGateway.environment)
        try await people(on: connection)
        let noise = try await Noise.start(try invocation.connectionOptions(), people: Self.people)
        let tokens = Self.people.map { ground.token($0) }
        var sides = [Side(), Side()]
        var held = GatewayCrowd.Counts()
        let rounds = invocation.count("rounds")
        for round in 0..<rounds * 2 {
            // Without, with, with, without: a drift of the machine's affects both alike.
            let isWith = round % 4 == 1 || round % 4 == 2
            let crowd = isWith ? GatewayCrowd(port: gateway.port, idle: idle, slow: slow, tokens: tokens) : nil
            if let crowd { try await gather(crowd) }
            try await measure(round, of: rounds * 2, isWith, gateway, tokens[0], &sides[isWith ? 1 : 0], on: connection)
            if let counts = crowd?.stop() {
                held.most = max(held.most, counts.most)
                held.cut += counts.cut
                held.bytes += counts.bytes
            }
        }
        await noise.stop()
        await connection.close()
        let most = gateway.usage.most
        guard gateway.isAlive else { throw Failure("the gateway ended: \(gateway.said)") }
        try await gateway.stop()
        return report(sides, held, most: most, events: noise.events)
    }

    /// Until nearly all are there, or no more come.
    private func gather(_ crowd: GatewayCrowd) async throws {
        var before = -1
        for _ in 0..<60 {
            try await Task.sleep(for: .seconds(1))
            let now = crowd.now.most
            if now >= (idle + slow) * 9 / 10 || now == before && now > 0 { return }
            before = now
        }
    }

    private func measure(
        _ round: Int, of all: Int, _ isWith: Bool, _ gateway: GatewayProcess, _ token: String, _ side: inout Side,
        on connection: Connection
    ) async throws {
        let name = isWith ? "with \(Humane.count(idle + slow)) clients" : "without clients"
        let draining = Draining(
            invocation: invocation, connection: connection, jobs: invocation.count("drain"))
        try await draining.enqueue(queue: "load.slow", label: "round \(round + 1) of \(all): enqueued")
        let costs = try await draining.drain("load.slow", label: name)
        side.rates.append(Double(costs.jobs) / max(costs.seconds, 0.001))
        let seconds = invocation.count("seconds")
        let ordinary = OrdinaryPeople(1, port: gateway.port, pause: .milliseconds(50)) { client, _, _ in
            client.call("now", token: token)
        }
        side.pickUps.append(try await pickUp(jobs: seconds * Self.rate, on: connection))
        let heard = ordinary.stop()
        // An answer that is none counts as a very late one.
        side.calls += heard.times + Array(repeating: 10_000, count: heard.refused)
        invocation.console.note(
            "round \(round + 1) of \(all), \(name): \(Humane.count(Int(side.rates.last ?? 0))) jobs/s, pick-up p99 \(Humane.decimal(side.pickUps.last ?? 0, places: 2)) ms"
        )
    }

    /// The 99th percentile from a call's time to its job's start, in milliseconds.
    private func pickUp(jobs: Int, on connection: Connection) async throws -> Double {
        let workers = try await LoadWorkers.start(
            1, invocation, arguments: invocation.slotArguments, on: connection)
        let starts = try Starts(path: workers.marksPath, jobs: jobs)
        let pickUp = try await PickUp(
            invocation, starts: starts, perSecond: Self.rate,
            by: "select millrace.enqueue('practice.mark', $1, queue => 'load.steady')"
        ).p99(jobs: jobs)
        try await workers.stop()
        return pickUp
    }

    private func report(_ sides: [Side], _ held: GatewayCrowd.Counts, most: Double, events: Int) -> ExitCode {
        let cost = (1 - median(sides[1].rates) / median(sides[0].rates)) * 100
        let (before, during) = (median(sides[0].pickUps), median(sides[1].pickUps))
        let call = percentile(sides[1].calls.sorted(), 0.99)
        return invocation.report(
            "gateway-slow",
            [
                .atLeast("events for those who follow streams", 1000, measured: Double(events), unit: ""),
                .atLeast("clients held at the most", Double(idle + slow) * 0.8, measured: Double(held.most), unit: ""),
                .atMost("what they cost a draining worker", 10, measured: max(0, cost), unit: "%"),
                .atMost("pick-up p99 at \(Self.rate)/s, × without them", 2, measured: during / before, unit: "×"),
                .atMost("an ordinary call meanwhile, p99", 250, measured: call, unit: "ms"),
                .atMost("the gateway's memory at its most", 600, measured: most, unit: "MB"),
            ],
            figures: [
                ("idle", .int(idle)), ("slow", .int(slow)), ("held", .int(held.most)), ("cut", .int(held.cut)),
                ("bytes_read", .int(held.bytes)), ("events", .int(events)),
                ("per_second_without", .array(sides[0].rates.map { .double($0) })),
                ("per_second_with", .array(sides[1].rates.map { .double($0) })),
                ("pick_up_p99_ms_without", .array(sides[0].pickUps.map { .double($0) })),
                ("pick_up_p99_ms_with", .array(sides[1].pickUps.map { .double($0) })),
                ("call_p99_ms_without", .double(percentile(sides[0].calls.sorted(), 0.99))),
                ("call_p99_ms_with", .double(call)), ("gateway_most_mb", .double(most)),
            ])
    }

    private func people(on connection: Connection) async throws {
        try await connection.execute(
            """
            insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
            select p, '7 days', '5 min', '{}', 'UTC', 'armed', millrace.now(), millrace.now() + interval '7 days', millrace.now() + interval '7 days', millrace.now()
              from unnest($1) p on conflict (person) do nothing
            """, [.texts(Self.people)])
    }

    /// As many as the system lets us have; the gateway inherits it.
    private static func raiseDescriptors() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}

/// Makes events for the people who follow streams, at a steady pace.
private final class Noise: Sendable {
    private let isOver = Atomic(false)
    private let made = Atomic(0)
    private let task: Mutex<Task<Void, Never>?> = Mutex(nil)

    static func start(_ options: ConnectionOptions, people: [String]) async throws -> Noise {
        let noise = Noise()
        let connection = try await Connection.open(options, name: "load")
        let task = Task {
            while !noise.isOver.load(ordering: .relaxed) {
                let done = try? await connection.execute(
                    "select millrace.check_in_set_interval(p, '7 days', actor => p) from unnest($1) p", [.texts(people)]
                )
                if done != nil { noise.made.add(people.count, ordering: .relaxed) }
                try? await Task.sleep(for: .milliseconds(250))
            }
            await connection.close()
        }
        noise.task.withLock { $0 = task }
        return noise
    }

    var events: Int { made.load(ordering: .relaxed) }

    func stop() async {
        isOver.store(true, ordering: .relaxed)
        await task.withLock { $0 }?.value
    }
}
