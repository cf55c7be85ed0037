import CommandKit
import LoadKit
import Supervision
import Telemetry

/// The time that permission and recording add to a call that does nothing.
struct SupervisorCost {
    let calls: Int

    private static let batch = 100

    func run(_ bars: inout [Bar], _ figures: inout [(String, JSONValue)]) async throws {
        for tasks in [1, 8] {
            let supervisor = Supervisor(Supervisor.Options(), log: .silent)
            let empty = try await middle(tasks) { try await Self.nothing { _ in } }
            let whole = try await middle(tasks) { try await supervisor.call("provider") { _ in } }
            let cost = max(0, whole - empty)
            bars.append(
                .atMost(
                    "\(Humane.count(calls)) calls in \(Humane.count(tasks, "task")): asking and recording, the median",
                    2,
                    measured: cost, unit: "µs"))
            figures.append(("cost_\(tasks)_tasks_us", .double(cost)))
            figures.append(("empty_\(tasks)_tasks_us", .double(empty)))
        }
    }

    @inline(never) private static func nothing(_ body: @Sendable (Int) async throws -> Void) async throws {
        try await body(0)
    }

    /// Microseconds a call takes, the median of batches.
    private func middle(_ tasks: Int, _ body: @escaping @Sendable () async throws -> Void) async throws -> Double {
        let rounds = max(1, calls / tasks / Self.batch)
        let samples = try await withThrowingTaskGroup(of: [Double].self) { group in
            for _ in 0..<tasks {
                group.addTask {
                    var samples: [Double] = []
                    samples.reserveCapacity(rounds)
                    for _ in 0..<rounds {
                        let began = Moment.now
                        for _ in 0..<Self.batch { try await body() }
                        samples.append(Double((Moment.now - began).nanoseconds) / 1000 / Double(Self.batch))
                    }
                    return samples
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        return median(samples)
    }
}
