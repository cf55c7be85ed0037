import CYardstick
package import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import Postgres
import Threads

extension Command {
    package static let loadGatewayCalls = scenario(
        "gateway-calls",
        summary: "Measure calls through the gateway beside direct calls of the same function",
        discussion: """
            People check in again and again, each on a connection that stays open: through POST /v1/rpc/check_in of a gateway in \
            its own process, and directly, in C over libpq, in the same role with the same claims. The direct calls are measured \
            twice: in a session that has role and claims once and for all, which no gateway can do, and in one transaction and round \
            trip that takes them on, as a gateway must. All take turns. The bar is against the faster of the two, and no call may \
            take longer than two seconds. With --with, wrk or h2load call, too; with --nginx, h2load calls by HTTP/2 through nginx.
            """,
        flags: [
            .count("connections", 1...200, 16, "Connections at once."),
            .count("seconds", 1...600, 5, "Of each turn."),
            .count("rounds", 1...25, 5, "How many rounds."),
            .single(
                "with", "TOOL", .choice(["wrk", "h2load"]), environment: .none,
                help: "Have this program of Debian's call the gateway, too."),
            .toggle("nginx", environment: .none, help: "Also through nginx, by HTTP/2, with h2load."),
        ],
        examples: [
            Example("millrace load gateway-calls", "16 connections, about a minute and a half"),
            Example("millrace load gateway-calls --with wrk --nginx --strict", "by others' programs, too"),
        ]
    ) { invocation in
        try await GatewayCallsScenario(invocation: invocation).run()
    }
}

private struct GatewayCallsScenario: Sendable {
    let invocation: Invocation

    private var connections: Int { invocation.count("connections") }
    private var seconds: Double { Double(invocation.count("seconds")) }

    /// What one way of calling reached in its turns.
    private struct Way: Sendable {
        let name: String
        let key: String
        let turn: @Sendable () async throws -> (rate: Double, times: [Double])
        var rates: [Double] = []
        /// Milliseconds of the calls of all turns.
        var times: [Double] = []

        init(name: String, key: String, turn: @escaping @Sendable () async throws -> (rate: Double, times: [Double])) {
            (self.name, self.key, self.turn) = (name, key, turn)
        }

        mutating func add(_ turn: (rate: Double, times: [Double])) {
            rates.append(turn.rate)
            times += turn.times
        }

        func percentile(_ share: Double) -> Double { LoadKit.percentile(times.sorted(), share) }
        var rate: Double { LoadKit.percentile(rates.sorted(), 0.5) }
    }

    private struct Caller: Sendable {
        let person: String
        let claims: String
        let token: String
    }

    func run() async throws -> ExitCode {
        let connection = try await invocation.connect()
        let ground = try await GatewayGround.make(invocation, on: connection)
        let callers = try await people(ground, on: connection)
        await connection.close()
        let gateway = try await GatewayProcess.start(ground, environment: UnlimitedGateway.environment)
        let requests = callers.map { caller in
            GatewayClient.request(
                "POST", "/v1/rpc/check_in", token: caller.token, body: "{\"person\":\"\(caller.person)\"}")
        }
        var ways = [
            Way(name: "direct, role set once", key: "direct") { try await direct(ground, callers, each: false) },
            Way(name: "direct, role set by each", key: "direct_each") { try await direct(ground, callers, each: true) },
            Way(name: "through the gateway", key: "gateway") { try await kept(gateway.port, requests) },
        ]
        ways += try await tools(gateway, callers)
        let rounds = invocation.count("rounds")
        var processor = 0.0
        for round in 1...rounds {
            // Each goes first as often as the others, as far as the rounds go.
            for place in ways.indices.map({ ($0 + round) % ways.count }) {
                let before = gateway.usage.processor
                ways[place].add(try await ways[place].turn())
                if ways[place].key == "gateway" { processor += gateway.usage.processor - before }
                invocation.console.note(
                    "round \(round) of \(rounds), \(ways[place].name): \(Humane.count(Int(ways[place].rates.last ?? 0)))/s"
                )
            }
        }
        let most = gateway.usage.most
        try await gateway.stop()
        return report(ways, processor: processor, most: most)
    }

    private func report(_ ways: [Way], processor: Double, most: Double) -> ExitCode {
        if invocation.console.format == .human {
            var table = Table([
                .init("way", shrinks: true), .init("calls/s", .trailing), .init("p50 ms", .trailing),
                .init("p99 ms", .trailing),
            ])
            for way in ways {
                table.add([
                    .init(way.name), .init(Humane.count(Int(way.rate))),
                    .init(Humane.decimal(way.percentile(0.5), places: 2)),
                    .init(Humane.decimal(way.percentile(0.99), places: 2)),
                ])
            }
            invocation.console.print(table)
        }
        let (direct, each, gateway) = (ways[0], ways[1], ways[2])
        func share(of other: Way) -> Double {
            percentile(zip(gateway.rates, other.rates).map { $0 / $1 }.sorted(), 0.5)
        }
        let calls = Double(max(1, gateway.times.count))
        return invocation.report(
            "gateway-calls",
            [
                .atLeast(
                    "\(Humane.count(connections, "connection")): share of direct calls of the same function", 50,
                    measured: share(of: direct) * 100, unit: "%"),
                .atMost(
                    "the slowest call through the gateway, as the apps' papers have it", 2,
                    measured: (gateway.times.max() ?? .infinity) / 1000, unit: "s"),
            ],
            figures: [
                ("connections", .int(connections)), ("rounds", .init(gateway.rates.count)),
                ("slowest_ms", .double(gateway.times.max() ?? 0)),
                ("share_of_direct", .double(share(of: direct))),
                ("share_of_direct_each", .double(share(of: each))),
                ("gateway_processor_ms", .double(processor * 1000 / calls)), ("gateway_most_mb", .double(most)),
                (
                    "ways",
                    .object(
                        ways.map { way in
                            .init(
                                key: way.key,
                                value: [
                                    "per_second": .array(way.rates.map { .double($0) }),
                                    "p50_ms": .double(way.percentile(0.5)), "p99_ms": .double(way.percentile(0.99)),
                                ])
                        })
                ),
            ])
    }

    /// Each with a watch, as its contacts' agreement would have made it.
    private func people(_ ground: GatewayGround, on connection: Connection) async throws -> [Caller] {
        let names = (1...connections).map { "load-\($0)" }
        try await connection.execute(
            """
            insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
            select p, '7 days', '5 min', '{}', 'UTC', 'armed', millrace.now(), millrace.now() + interval '7 days', millrace.now() + interval '7 days', millrace.now()
              from unnest($1) p on conflict (person) do update set state = 'armed', expires_at = excluded.expires_at, wake_at = excluded.wake_at
            """, [.texts(names)])
        return names.map { name in
            let claims = GatewayGround.claims(name)
            return Caller(
                person: name, claims: claims.compact, token: GatewayToken.signed(claims, secret: ground.secret))
        }
    }

    // MARK: turns

    private static let most = 2_000_000

    private func direct(
        _ ground: GatewayGround, _ callers: [Caller], each: Bool
    ) async throws -> (rate: Double, times: [Double]) {
        let seconds = seconds
        let (result, times) = await Thread.run(name: "gateway-direct") {
            var times = [Double](repeating: 0, count: Self.most)
            let claims = callers.map { strdup($0.claims) }
            let people = callers.map { strdup($0.person) }
            defer { (claims + people).forEach { free($0) } }
            let result = yardstick_calls(
                ground.location, ground.role, claims.compactMap { UnsafePointer($0) },
                people.compactMap { UnsafePointer($0) }, "select millrace.check_in($1)", each ? 1 : 0,
                Int32(callers.count), seconds, &times, Int64(times.count))
            return (result, Array(times.prefix(Int(result.jobs))))
        }
        return (try rate(result, "direct calls"), times)
    }

    private func kept(_ port: UInt16, _ requests: [String]) async throws -> (rate: Double, times: [Double]) {
        let seconds = seconds
        let (result, times) = await Thread.run(name: "gateway-client") {
            var times = [Double](repeating: 0, count: Self.most)
            let texts = requests.map { strdup($0) }
            defer { texts.forEach { free($0) } }
            let result = yardstick_keepalive(
                port, texts.compactMap { UnsafePointer($0) }, Int32(texts.count), seconds, &times, Int64(times.count))
            return (result, Array(times.prefix(Int(result.jobs))))
        }
        return (try rate(result, "calls through the gateway"), times)
    }

    private func rate(_ result: yardstick_result, _ what: String) throws -> Double {
        try Yardstick.Result(result, "the \(what)").perSecond
    }

    // MARK: others' programs

    private func tools(_ gateway: GatewayProcess, _ callers: [Caller]) async throws -> [Way] {
        var ways: [Way] = []
        if let tool = invocation.parsed.string("with") {
            ways.append(
                Way(name: "the gateway, by \(tool)", key: tool) {
                    tool == "wrk"
                        ? try await wrk(gateway.port, callers)
                        : try await h2load("http://127.0.0.1:\(gateway.port)", callers, isTwo: false)
                })
        }
        if invocation.parsed.isOn("nginx") {
            let front = try await NginxFront.start(before: [gateway.port])
            ways.append(
                Way(name: "nginx with HTTP/2, by h2load", key: "nginx") {
                    try await h2load("http://127.0.0.1:\(front.port)", callers, isTwo: true)
                })
        }
        return ways
    }

    private func wrk(_ port: UInt16, _ callers: [Caller]) async throws -> (rate: Double, times: [Double]) {
        let directory = try Scratch.directory("wrk", isOpen: false)
        let lines = callers.map { "{\"\($0.token)\", \"\($0.person)\"}" }.joined(separator: ", ")
        try """
        local callers = {\(lines)}
        local turn = 0
        wrk.method = "POST"
        request = function()
            turn = turn % #callers + 1
            wrk.headers["Authorization"] = "Bearer " .. callers[turn][1]
            wrk.headers["Content-Type"] = "application/json"
            return wrk.format(nil, "/v1/rpc/check_in", nil, '{"person":"' .. callers[turn][2] .. '"}')
        end
        done = function(summary, latency)
            io.write(string.format("MILLRACE %d %d %f %f\\n", summary.requests, summary.duration, latency:percentile(50), latency:percentile(99)))
            io.write(string.format("BAD %d\\n", summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout))
        end
        """.write(toFile: directory + "/calls.lua", atomically: true, encoding: .utf8)
        let said = try await GatewayTool.run(
            "wrk",
            [
                "-t1", "-c\(connections)", "-d\(Int(seconds))s", "-s", directory + "/calls.lua",
                "http://127.0.0.1:\(port)",
            ],
            in: directory)
        guard said.contains("\nBAD 0\n"),
            let line = said.split(separator: "\n").first(where: { $0.hasPrefix("MILLRACE ") })
        else { throw Failure("wrk had errors: \(said.suffix(1000))") }
        let words = line.split(separator: " ").compactMap { Double($0) }
        guard words.count == 4 else { throw Failure("wrk said something else: \(said.suffix(1000))") }
        // Two values stand for the distribution.
        return (
            words[0] / (words[1] / 1e6),
            [Double](repeating: words[2] / 1000, count: 98) + [words[3] / 1000, words[3] / 1000]
        )
    }

    /// One process for each caller, for it sends the same headers always.
    private func h2load(
        _ address: String, _ callers: [Caller], isTwo: Bool
    ) async throws -> (rate: Double, times: [Double]) {
        let directory = try Scratch.directory("h2load", isOpen: false)
        let seconds = Int(seconds)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (place, caller) in callers.enumerated() {
                let body = "\(directory)/body-\(place)"
                try "{\"person\":\"\(caller.person)\"}".write(toFile: body, atomically: true, encoding: .utf8)
                let arguments =
                    (isTwo ? [] : ["--h1"]) + [
                        "-c", "1", "-m", "1", "-t", "1", "-D", "\(seconds)", "-d", body, "--log-file",
                        "\(directory)/log-\(place)", "-H", "authorization: Bearer \(caller.token)", "-H",
                        "content-type: application/json", "\(address)/v1/rpc/check_in",
                    ]
                group.addTask { _ = try await GatewayTool.run("h2load", arguments, in: directory) }
            }
            try await group.waitForAll()
        }
        var times: [Double] = []
        for place in callers.indices {
            let log = (try? String(contentsOfFile: "\(directory)/log-\(place)", encoding: .utf8)) ?? ""
            for line in log.split(separator: "\n") {
                let words = line.split(separator: "\t")
                guard words.count == 3, words[1] == "200", let microseconds = Double(words[2]) else {
                    throw Failure("h2load had an answer that is not 200: \(line)")
                }
                times.append(microseconds / 1000)
            }
        }
        return (Double(times.count) / Double(seconds), times)
    }
}
