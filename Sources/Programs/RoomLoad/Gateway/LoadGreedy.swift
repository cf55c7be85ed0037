import Blobs
package import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import Postgres
import Synchronization
import Threads

extension Command {
    package static let loadGreedy = scenario(
        "greedy",
        summary: "Measure what a person who asks for everything costs another",
        discussion: """
            A few people call a gateway at a steady pace, alone first. Then one person floods it with each kind of request in turn, on \
            many connections at once: pushes of 500 operations, batches, a list of 100 MB, streams and long polls from the \
            beginning, uploads, tokens of devices, idempotency keys. The people's calls go on meanwhile, and are compared with those that were \
            made alone. The same for the console, between two visitors: pages, live pages, wrong passwords.
            """,
        flags: [
            .count("seconds", 1...600, 10, "Of each flood."),
            .count("callers", 1...500, 40, "Of a flood, at once."),
            .single(
                "only", "NAME", .text, environment: .none,
                help: "This flood alone, such as pushes or pages; its name as the report has it."),
        ],
        examples: [
            Example("millrace load greedy", "about three minutes"),
            Example("millrace load greedy --only pushes --seconds 5", "one kind"),
        ]
    ) { invocation in
        try await GreedyScenario(invocation: invocation).run()
    }
}

private struct GreedyScenario: Sendable {
    let invocation: Invocation

    private var seconds: Int { invocation.count("seconds") }
    private var callers: Int { invocation.count("callers") }
    private var only: String? { invocation.parsed.string("only") }

    private static let people = 4
    private static let pause = Duration.milliseconds(60)
    /// A call that takes so little is nobody's trouble, whatever it took alone.
    private static let floor = 20.0
    /// The floods' share of a pool of 16, the others' calls, and what the gateway does itself.
    private static let mostConnections = 14.0

    func run() async throws -> ExitCode {
        let connection = try await invocation.connect()
        var bars = try await gateway(on: connection)
        bars += try await console(on: connection)
        await connection.close()
        guard !bars.isEmpty else { throw Failure(.misused, "there is no flood of that name") }
        return invocation.report(
            "greedy", bars, figures: [("seconds", .int(seconds)), ("callers", .int(callers))])
    }

    private func gateway(on connection: Connection) async throws -> [Bar] {
        let ground = try await GatewayGround.make(invocation, on: connection)
        let secret = "a secret that signs links of this load"
        let gateway = try await GatewayProcess.start(
            ground, environment: ["MILLRACE_PUBLIC_URL": "http://localhost", "MILLRACE_SECRET": secret])
        let floods = GreedyFloods(ground: ground, port: gateway.port)
        let chosen = floods.all.filter { only == nil || $0.name == only }
        guard !chosen.isEmpty else {
            try await gateway.stop()
            return []
        }
        try await floods.fill(on: connection)
        try await connection.execute(
            "select millrace.link_key_set($1, 'http://localhost', 10000000)",
            [.bytea(BlobLinks(publicURL: "http://localhost", secrets: [secret]).newestKey)])
        let tokens = (0..<Self.people).map { ground.token("ordinary-\($0)") }
        try await arm(on: connection)
        let busy = try await BusyConnections.start(try invocation.connectionOptions(), login: ground.name + "_login")
        var bars = try await compare(chosen, port: gateway.port) { client, person, number in
            switch number % 3 {
            case 0: client.call("check_in", ["person": .string("ordinary-\(person)")], token: tokens[person])
            case 1: client.call("moods", ["person": .string("ordinary-\(person)")], token: tokens[person])
            default: client.send("GET", "/v1/sync?since=0", token: tokens[person])
            }
        }
        bars.append(
            .atMost(
                "connections of the gateway at work at one time", Self.mostConnections,
                measured: Double(await busy.stop()), unit: ""))
        guard gateway.isAlive else { throw Failure("the gateway ended: \(gateway.said)") }
        try await gateway.stop()
        return bars
    }

    private func console(on connection: Connection) async throws -> [Bar] {
        let floods = GreedyVisitor.floods
        let chosen = floods.filter { only == nil || $0.name == only }
        guard !chosen.isEmpty else { return [] }
        let console = try await ConsoleProcess.start(invocation)
        let greedy = try console.signIn(GreedyVisitor.name), other = try console.signIn("ordinary")
        try await connection.execute(
            "select count(millrace.enqueue('load.small', jsonb_build_object('n', n), queue => 'load.q' || n % 50)) from generate_series(1, 20000) n",
            deadline: .seconds(120))
        let bars = try await compare(chosen.map { $0.flood(greedy, console.port) }, port: console.port) {
            client, _, number in
            let page = ["/console/queues", "/console/jobs?state=ready", "/console/workers"][number % 3]
            return client.send("GET", page, headers: [("Cookie", other)])
        }
        await console.stop()
        return bars
    }

    /// What the others hear alone, and beside each flood.
    private func compare(
        _ floods: [GreedyFlood], port: UInt16, call: @escaping OrdinaryPeople.Call
    ) async throws -> [Bar] {
        _ = try await listen(port: port, for: .seconds(1), call: call)  // connections, plans and caches
        let calm = try await listen(port: port, for: .seconds(seconds), call: call)
        guard calm.refused == 0 else {
            throw Failure("a call was refused while nobody else called: \(calm.said ?? "")")
        }
        invocation.console.note("alone: p99 \(Humane.decimal(calm.p99, places: 1)) ms of \(calm.times.count) calls")
        var bars: [Bar] = []
        for flood in floods {
            let running = flood.start(callers: callers, port: port)
            let heard = try await listen(port: port, for: .seconds(seconds), call: call)
            let counts = await Thread.run(name: "greedy-stop") { running.stop() }
            let answers = counts.sorted { $0.key < $1.key }.map { "\(Humane.count($0.value)) × \($0.key)" }
            invocation.console.note(
                "\(flood.name): \(answers.joined(separator: ", ")); another's p50 \(Humane.decimal(percentile(heard.times, 0.5), places: 1)), p99 \(Humane.decimal(heard.p99, places: 1)) ms"
            )
            if let said = heard.said { invocation.console.note("\(flood.name): another was answered \(said)") }
            bars += [
                .atMost(
                    "\(flood.name): another's calls, p99", max(3 * calm.p99, Self.floor), measured: heard.p99,
                    unit: "ms"),
                .atMost("\(flood.name): another's calls refused", 0, measured: Double(heard.refused), unit: ""),
            ]
        }
        return bars
    }

    private func listen(
        port: UInt16, for time: Duration, call: @escaping OrdinaryPeople.Call
    ) async throws -> OrdinaryPeople.Heard {
        let people = OrdinaryPeople(Self.people, port: port, pause: Self.pause, call: call)
        try await Task.sleep(for: time)
        return await Thread.run(name: "ordinary-stop") { people.stop() }
    }

    private func arm(on connection: Connection) async throws(PostgresError) {
        try await connection.execute(
            """
            insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
            select p, '7 days', '5 min', '{}', 'UTC', 'armed', now(), now() + interval '7 days', now() + interval '7 days', now() from unnest($1) p
            """, [.texts((0..<Self.people).map { "ordinary-\($0)" })])
    }
}

/// Looks how many sessions of a login work at one time.
private final class BusyConnections: Sendable {
    private let isOver = Atomic(false)
    private let most = Atomic(0)
    private let task: Mutex<Task<Void, Never>?> = Mutex(nil)

    static func start(_ options: ConnectionOptions, login: String) async throws -> BusyConnections {
        let busy = BusyConnections()
        let connection = try await Connection.open(options, name: "load")
        let task = Task {
            while !busy.isOver.load(ordering: .relaxed) {
                let found = try? await connection.query(
                    "select count(*) from pg_stat_activity where usename = $1 and state = 'active'", [.text(login)]
                ) { row throws(PostgresError) in Int(try row.int(0)) }.first
                busy.most.max(found ?? 0, ordering: .relaxed)
                try? await Task.sleep(for: .milliseconds(50))
            }
            await connection.close()
        }
        busy.task.withLock { $0 = task }
        return busy
    }

    /// The most that there were.
    func stop() async -> Int {
        isOver.store(true, ordering: .relaxed)
        await task.withLock { $0 }?.value
        return most.load(ordering: .relaxed)
    }
}
