import Postgres
import TestSupport
import Testing

/// Random sequences of what callers, operators and workers do, against rules that must hold after each step.
@Suite struct SequenceTests {
    @Test(arguments: 1...8)
    func `whatever is done, each job has one place, each key one holder, and all come to an end`(
        seed: Int
    ) async throws {
        try await withDatabase(.movableClock) { database in
            var world = SequenceWorld(
                connection: try await database.connect(), other: try await database.connect(),
                observer: try await database.connect(),
                random: SeededRandom(seed))
            try await world.prepare()
            for _ in 0..<200 {
                try await world.step()
                let faults = try await world.faults()
                guard faults.isEmpty else {
                    Issue.record(
                        "seed \(seed): \(faults.joined(separator: "; ")), after:\n\(world.story.joined(separator: "\n"))"
                    )
                    return
                }
            }
            let left = try await world.settle() + world.faults()
            if !left.isEmpty {
                Issue.record(
                    "seed \(seed): \(left.joined(separator: "; ")), after:\n\(world.story.joined(separator: "\n"))")
            }
        }
    }
}
