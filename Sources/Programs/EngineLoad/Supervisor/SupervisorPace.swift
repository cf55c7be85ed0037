import CommandKit
import LoadKit
import Supervision

/// Four processes that want more than a provider allows, and know it from its headers alone.
struct SupervisorPace: Sendable {
    let world: SupervisorWorld
    let seconds: Int
    let console: Console

    private static let allowed = 10

    func run() async throws -> [Bar] {
        world.provider.script {
            $0.pace = Self.allowed
            $0.latency = .milliseconds(20)
        }
        let callers = try (1...4).map {
            try world.start("caller-\($0)", port: world.provider.port, loops: 4, [:])
        }
        defer { for caller in callers { caller.kill() } }
        // From the first call on: the two seconds in which they find each other are not counted.
        try await Patience.wait(.seconds(30), every: .milliseconds(5), else: "nobody called") {
            !world.provider.requests.isEmpty
        }
        guard let first = world.provider.requests.first?.began else { throw Failure("nobody called") }
        try await Task.sleep(for: .seconds(seconds))
        let from = first + .seconds(2)
        let until = first + .seconds(seconds)
        let counted = world.provider.requests.filter { $0.began >= from && $0.began < until }
        let throttled = counted.count { $0.status == 429 }
        let served = counted.count - throttled
        let times = counted.filter { $0.status == 429 }.map { Humane.decimal(($0.began - first).inSeconds, places: 1) }
        if !times.isEmpty { console.note("answered with 429 after \(times.joined(separator: ", ")) s") }
        return [
            .atMost(
                "4 processes, \(Self.allowed) calls a second allowed, \(seconds) s: answered with 429",
                1, measured: 100 * Double(throttled) / Double(max(1, counted.count)), unit: "%"),
            .atLeast(
                "the same: of what is allowed, used", 95,
                measured: 100 * Double(served) / Double(Self.allowed * (seconds - 2)), unit: "%"),
        ]
    }
}
