import Sandbox
import Testing

@Suite struct RequestTimeTests {
    /// What is decided at each look at a child that may take 40 s, in seconds.
    private func verdicts(_ looks: [(elapsed: Int, waited: Int, cpu: Double)]) -> [RequestTime.Verdict] {
        var time = RequestTime(limit: .seconds(40))
        return looks.map {
            time.verdict(elapsed: .seconds($0.elapsed), waited: .seconds($0.waited), cpu: .seconds($0.cpu))
        }
    }

    @Test func `time in which a child waits for a processor does not count`() {
        // 2.5 s of processor time in 40 s, as beside a load of 20.
        #expect(
            verdicts([(40, 37, 2.5), (77, 71, 5), (120, 75, 30)])
                == [.goesOn(.seconds(37)), .goesOn(.seconds(34)), .isOver])
    }

    @Test func `a child that has had little of a processor goes on while it gets some`() {
        #expect(
            verdicts([(40, 0, 2.5), (50, 0, 3), (60, 0, 3.1)])
                == [.goesOn(.seconds(10)), .goesOn(.seconds(10)), .isOver])
    }

    @Test func `one that stands still is killed soon after its time, and one that computes at its time`() {
        #expect(verdicts([(40, 0, 0), (50, 0, 0)]) == [.goesOn(.seconds(10)), .isOver])
        #expect(verdicts([(40, 0, 39)]) == [.isOver])
    }

    @Test func `no machine is waited for without end, and what it did not do is its fault`() {
        #expect(verdicts([(399, 395, 4), (400, 395, 4)]) == [.goesOn(.seconds(1)), .isStarved])
        #expect(verdicts([(390, 300, 10), (400, 300, 11)]) == [.goesOn(.seconds(10)), .isStarved])
        let ending = ProcessEnd(status: 9, usage: Usage(), sentence: .starved).failure(SandboxedChild.Limits())
        #expect(ending.reason == .starved && !ending.isDeterministic)
    }
}
