import MillraceJobs

extension Practice {
    struct Version: Job {
        static let kind = "practice.version"
        static let retries = RetryPolicy(attempts: 100, base: .milliseconds(50), cap: .seconds(1))
        var n: Int64
        /// How long it waits between its two steps, in seconds.
        var pause: Double?
    }

    /// What practice.version notes: `n * 4` plus this.
    package enum VersionMark: Int64 {
        /// A run began.
        case began
        /// The first step is on record.
        case bound
        /// The last step is on record.
        case done
    }

    /// practice.version: two steps with a wait between them, and notes how far each run came.
    package static func versioned(_ marks: PracticeMarks?) -> Handler {
        Handler(Version.self) { job, context in
            func note(_ mark: VersionMark) { marks?.write(job.n * 4 + mark.rawValue) }
            note(.began)
            _ = try await context.step("first") { job.n }
            note(.bound)
            if let pause = job.pause { try await context.sleep("pause", for: .seconds(pause)) }
            _ = try await context.step("last") { job.n }
            note(.done)
            return .done
        }
    }
}
