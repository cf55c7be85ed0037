import FoundationEssentials
import Glibc
import Jobs

/// Kinds to try things out with, and to measure.
package enum Practice {
    package static let handlers: [Handler] = [
        Handler(Nothing.self) { _, _ in .done },
        Handler(Sleep.self) { job, _ in
            try await Task.sleep(for: .milliseconds(job.ms))
            return .done
        },
        Handler(Fail.self) { job, context in
            guard context.attempt <= job.times else { return .done }
            throw OnPurpose(attempt: context.attempt, times: job.times)
        },
        Handler(Crash.self) { _, _ in
            kill(getpid(), SIGKILL)
            return .done
        },
        Handler(Spin.self) { job, _ in
            // Awaits nothing that could be cancelled, yet leaves the threads to others.
            let end = ContinuousClock.now + .milliseconds(job.ms)
            while ContinuousClock.now < end { await Task.yield() }
            return .done
        },
        Handler(kind: "practice.echo") { args, _ in
            _ = args
            return .done
        },
    ]

    struct Nothing: Job {
        static let kind = "practice.nothing"
        var n: Int?
    }

    struct Sleep: Job {
        static let kind = "practice.sleep"
        var ms: Int
    }

    struct Fail: Job {
        static let kind = "practice.fail"
        static let retries = RetryPolicy(attempts: 20, base: .seconds(1), cap: .seconds(5))
        var times: Int
    }

    struct Crash: Job {
        static let kind = "practice.crash"
    }

    struct Spin: Job {
        static let kind = "practice.spin"
        var ms: Int
    }

    struct OnPurpose: Error, CustomStringConvertible {
        let attempt: Int
        let times: Int

        var description: String { "failing on purpose, \(attempt) of \(times)" }
    }
}
