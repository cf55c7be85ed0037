import MillraceJobs
import MillraceQueues
import Testing

@testable import Workers

/// A worker that was taken for dead begins another session while an answer of the first may be on its way.
@Suite struct SessionChangeTests {
    private func sessions(_ guarded: WorkerStateGuard) -> [Int64] {
        var found: [Int64] = []
        while let run = guarded.next({ job, session in
            found.append(session)
            return makeRun(job)
        }) {
            #expect(run.job.number > 0)
        }
        return found
    }

    @Test func `no job of a claim starts under a session that did not claim it`() {
        let state = WorkerStateGuard(slots: 10)
        _ = state.begin(session: 1)
        #expect(state.accept([claimed(1)], gates: [], of: 1))
        #expect(sessions(state) == [1])

        // Claimed under the first, not yet started.
        #expect(state.accept([claimed(2, number: 16)], gates: [], of: 1))
        #expect(state.expect(taken([claimed(3, number: 24)]), gates: [], of: 1))
        let lost = state.begin(session: 2)
        #expect(lost.runs.map(\.job.id) == [1], "what runs is told to stop")
        #expect(state.leaseNumbers.isEmpty && state.expected.isEmpty)
        #expect(sessions(state).isEmpty)

        // The answers that come later.
        #expect(!state.accept([claimed(4, number: 32)], gates: [], of: 1))
        #expect(!state.expect(taken([claimed(5, number: 40)]), gates: [], of: 1))
        #expect(state.arrived([claimed(3, number: 24)], of: [24]).isEmpty)
        #expect(sessions(state).isEmpty && state.leaseNumbers.isEmpty)

        #expect(state.accept([claimed(6, number: 48)], gates: [], of: 2))
        #expect(sessions(state) == [2])
    }
}
