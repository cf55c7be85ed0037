package import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import Postgres
import Synchronization
import Threads

extension Command {
    package static let loadGatewayOffline = scenario(
        "gateway-offline",
        summary: "Hand in offline batches in order and in disorder, while the gateway is killed, and compare the ends",
        discussion: """
            For each run a batch of random operations is made, with some that must be refused and a check-in between them. One person \
            hands it in in order. Another hands in the same permuted, cut in two with an overlap, by two devices at once, and then \
            everything again. Both must end alike, and the check-in must be in force. Meanwhile the gateway is killed with -9 and started \
            again; devices send again what got no answer.
            """,
        flags: [
            .count("runs", 1...1_000_000, 1000, "How many batches."),
            .count("kills", 0...1000, 40, "How often the gateway is killed."),
            .count("seed", 0...1_000_000_000, 1, "Of the first batch; the others follow from it."),
        ],
        examples: [
            Example("millrace load gateway-offline --strict", "1,000 batches, 40 kills"),
            Example("millrace load gateway-offline --runs 1 --kills 0 --seed 4711", "one that failed, once more"),
        ]
    ) { invocation in
        try await GatewayOfflineScenario(invocation: invocation).run()
    }
}

struct GatewayOfflineScenario: Sendable {
    let invocation: Invocation

    private var runs: Int { invocation.count("runs") }
    private var kills: Int { invocation.count("kills") }

    func run() async throws -> ExitCode {
        let seed = invocation.count("seed")
        let connection = try await invocation.connect()
        let ground = try await GatewayGround.make(invocation, on: connection)
        let gateway = try await GatewayProcess.start(ground, environment: UnlimitedGateway.environment)
        let world = OfflineWorld(ground: ground, port: gateway.port, seed: UInt64(seed))
        try await world.prepare(runs: runs, on: connection)
        let now = Int(Date().timeIntervalSince1970)
        let progress = Progress()
        let killed = Task { try await kill(gateway, progress) }
        let began = ContinuousClock.now
        let played = await OnThreads.each(Array(0..<runs), threads: 4) { number in
            let result = world.run(number, now: now)
            progress.add()
            return result
        }
        let seconds = began.duration(to: .now) / .seconds(1)
        let times = try await killed.value
        var tally = OfflineWorld.Tally()
        var differing: [String] = []
        for (number, one) in played.enumerated() {
            tally.add(one.tally)
            differing += try await world.compare(number, one.batch, on: connection)
        }
        await connection.close()
        try await gateway.stop()
        return report(tally, differing, times, seconds: seconds, seed: seed)
    }

    /// Spread evenly over the runs; each while several batches are under way.
    private func kill(_ gateway: GatewayProcess, _ progress: Progress) async throws -> Int {
        for number in 0..<kills {
            while progress.done * (kills + 1) < (number + 1) * runs {
                guard progress.done < runs else { return number }
                try await Task.sleep(for: .milliseconds(2))
            }
            gateway.kill()
            try await gateway.start()
        }
        return kills
    }

    private final class Progress: Sendable {
        private let count = Mutex(0)
        var done: Int { count.withLock { $0 } }
        func add() { count.withLock { $0 += 1 } }
    }

    private func report(
        _ tally: OfflineWorld.Tally, _ differing: [String], _ times: Int, seconds: Double, seed: Int
    ) -> ExitCode {
        for fault in (tally.faults + differing).prefix(20) { invocation.console.note(fault) }
        return invocation.report(
            "gateway-offline",
            [
                .atMost("batches that ended otherwise in disorder", 0, measured: Double(differing.count), unit: ""),
                .atMost(
                    "operations with an answer that is not allowed", 0, measured: Double(tally.wrong), unit: ""),
                .atLeast("kills of the gateway", Double(kills), measured: Double(times), unit: ""),
            ],
            figures: [
                ("seed", .int(seed)), ("runs", .int(tally.runs)), ("operations", .int(tally.operations)),
                ("refused", .int(tally.refused)), ("same", .int(tally.repeated)), ("unanswered", .int(tally.lost)),
                ("kills", .int(times)), ("seconds", .double(seconds)),
                ("faults", JSONValue(Array((tally.faults + differing).prefix(20)))),
            ])
    }
}
