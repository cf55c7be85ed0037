import Faults
import Supervision
import Testing

@Suite struct CircuitTests {
    private func circuit() -> Circuit {
        var settings = Breaker.Settings()
        settings.failures = 3
        return Circuit(settings)
    }

    private func fail(_ circuit: inout Circuit, at now: Moment) -> Bool {
        guard case .go(let permit) = circuit.admit(at: now) else { return false }
        _ = circuit.record(permit, .unavailable, took: .milliseconds(5), jitter: 0.5, at: now)
        return true
    }

    @Test func `what an operator observes is let through, and what would have been refused is counted`() {
        var circuit = circuit()
        let now = Moment.start
        circuit.adopt(
            .observing(until: now.after(3_600_000)), generation: 2, reason: "a trial", leases: [], at: now)
        for index in 0..<10 {
            let later = now.after(index)
            let went = fail(&circuit, at: later)
            #expect(went)
        }
        #expect(circuit.totals.failed == 10 && circuit.totals.refused == 0)
        #expect(circuit.totals.wouldRefuse == 7)  // three in a row would have opened it
        #expect(circuit.votes(at: now.after(20)))
    }

    @Test func `what an operator keeps closed is let through and not judged`() {
        var circuit = circuit()
        let now = Moment.start
        circuit.adopt(
            .forcedClosed(until: now.after(3_600_000)), generation: 2, reason: "we know better", leases: [],
            at: now)
        for index in 0..<10 {
            let went = fail(&circuit, at: now.after(index))
            #expect(went)
        }
        #expect(circuit.totals.failed == 10 && circuit.totals.wouldRefuse == 0)
        #expect(!circuit.votes(at: now.after(20)))
    }

    @Test func `what is refused is counted as such and as nothing else`() {
        var circuit = circuit()
        let now = Moment.start
        for index in 0..<10 { _ = fail(&circuit, at: now.after(index)) }
        #expect(circuit.totals.failed == 3 && circuit.totals.refused == 7 && circuit.totals.ok == 0)
    }
}
