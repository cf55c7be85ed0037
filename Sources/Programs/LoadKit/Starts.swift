package import CommandKit
import Synchronization
package import Workers

/// Follows the marks of worker processes: when each job's run began, the first one where there were several.
package final class Starts: Sendable {
    private struct State {
        var read = 0
        var times: [Int64]
        var count = 0
        var again = 0
    }

    private let marks: PracticeMarks
    private let state: Mutex<State>

    /// - Parameter jobs: their numbers are 0 up to this.
    package init(path: String, jobs: Int) throws(Failure) {
        guard let marks = PracticeMarks(path: path) else {
            throw Failure("the file of marks could not be opened: \(path)")
        }
        self.marks = marks
        state = Mutex(State(times: [Int64](repeating: 0, count: jobs)))
    }

    /// Reads on; returns what began since the last look.
    @discardableResult
    package func follow() -> [PracticeMarks.Mark] {
        state.withLock { state in
            let found = marks.read(from: state.read)
            state.read += found.count
            var first: [PracticeMarks.Mark] = []
            for mark in found {
                guard let n = Int(exactly: mark.n), state.times.indices.contains(n) else { continue }
                if state.times[n] == 0 {
                    state.times[n] = mark.nanoseconds
                    state.count += 1
                    first.append(mark)
                } else {
                    state.again += 1
                }
            }
            return first
        }
    }

    package func time(of n: Int) -> Int64? {
        state.withLock { $0.times[n] == 0 ? nil : $0.times[n] }
    }

    /// How many jobs have begun.
    package var count: Int { state.withLock { $0.count } }
    /// Runs beyond a job's first.
    package var again: Int { state.withLock { $0.again } }

    /// Waits until the job has begun; nil if it has not by then.
    package func wait(for n: Int, atMost limit: Duration) async throws -> Int64? {
        let deadline = ContinuousClock.now + limit
        while true {
            follow()
            if let time = time(of: n) { return time }
            guard ContinuousClock.now < deadline else { return nil }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Waits until `wanted` jobs have begun, or the time is over; the caller sees the count ten times a second.
    package func wait(forCount wanted: Int, atMost limit: Duration, watch: (Int) -> Void = { _ in }) async throws {
        let deadline = ContinuousClock.now + limit
        while true {
            follow()
            watch(count)
            guard count < wanted, ContinuousClock.now < deadline else { return }
            try await Task.sleep(for: .milliseconds(100))
        }
    }
}
