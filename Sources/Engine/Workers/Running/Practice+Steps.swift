import Glibc
import MillraceJobs

extension Practice {
    struct Steps: Job {
        static let kind = "practice.steps"
        var steps: Int
        var ms: Int?
        /// The process dies behind that step, once.
        var crashAfter: Int?

        enum CodingKeys: String, CodingKey {
            case steps, ms
            case crashAfter = "crash_after"
        }
    }

    struct StepsDone: Codable, Sendable {
        var steps: Int
        /// Those that this run did itself; an earlier one had done the others.
        var ran: [Int]
        var sum: Int
    }

    /// Step n has the value n; each says to the log that it runs.
    static let stepsHandler = Handler(Steps.self) { job, context in
        guard (1...Context.mostSteps).contains(job.steps) else { return .discard("steps must be 1 to 1000") }
        var done = StepsDone(steps: job.steps, ran: [], sum: 0)
        for n in 1...job.steps {
            context.progress(Double(n - 1) / Double(job.steps), stage: "step \(n)", note: "\(n) of \(job.steps)")
            done.sum += try await context.step("step-\(n)") {
                context.log("step \(n) runs")
                try await Task.sleep(for: .milliseconds(job.ms ?? 100))
                done.ran.append(n)
                return n
            }
            if n == job.crashAfter, context.crashes == 0 { kill(getpid(), SIGKILL) }
        }
        context.progress(1, stage: "done")
        try context.result(done)
        return .done
    }
}
