import CommandKit
import FoundationEssentials
import Postgres
import Supervision

/// How a provider's traffic came back as the provider saw it, compared with what our ramp allows.
struct MailRamp {
    struct Step {
        var share: Double
        var offered = 0
        var got = 0
        /// One call is always let through, and the clocks of the two sides may differ by one more.
        var above: Double { Double(got) - share * Double(offered) - 2 }
    }

    var steps: [Step]

    /// nil: it has not come back yet.
    static func began(_ provider: String, on connection: Connection) async throws(PostgresError) -> Date? {
        try await connection.query(
            """
            select e.at from millrace.provider_events e
             where e.provider = $1 and e.to_state = 'ramping' and exists (
                select from millrace.provider_events c where c.provider = e.provider and c.to_state = 'closed' and c.at > e.at)
             order by e.at desc limit 1
            """, [.text(provider)]
        ) { row throws(PostgresError) in try row.optionalDate(0) }.first ?? nil
    }

    /// - Parameter length: The length of a step.
    init(
        began: Date, length: Duration, first: [ContinuousClock.Instant], second: [ContinuousClock.Instant]
    ) {
        let offset = Duration.seconds(Date().timeIntervalSince(began))
        let start = ContinuousClock.now - offset
        steps = Ramp.steps.map { Step(share: $0.share) }
        func step(of time: ContinuousClock.Instant) -> Int? {
            let number = Int(((time - start) / length).rounded(.down))
            return steps.indices.contains(number) ? number : nil
        }
        for number in first.compactMap(step) {
            steps[number].offered += 1
            steps[number].got += 1
        }
        for number in second.compactMap(step) { steps[number].offered += 1 }
    }
}
