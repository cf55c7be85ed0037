import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

@Suite struct PeopleTests {
    /// The first of the sequences that `millrace load people` plays ten thousand of.
    @Test func `random sequences of family, consent, erasure and check-in calls keep to the rules`() async throws {
        try await withConnection(.movableClock) { connection in
            let world = PeopleWorld(connection, name: TestCluster.name("people"))
            try await world.open()
            var tally = PeopleWorld.Tally()
            for seed in 1...200 { try await world.play(seed: UInt64(seed), steps: 60, into: &tally) }
            try await world.close()
            #expect(tally.faults.isEmpty, "\(tally.faults.prefix(3).joined(separator: "\n"))")
            #expect(tally.steps == 200 * 60)
            // They got somewhere: most calls did something, and what the rules are about has happened.
            #expect(tally.refused > 1000 && tally.refused < tally.steps / 2, "\(tally.refused)")
            #expect(tally.asks > 500 && tally.alarms > 100 && tally.endings > 10, "\(tally)")
        }
    }
}
