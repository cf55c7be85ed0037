package import MillraceQueues

extension BuildRow {
    /// What is wrong when nobody takes its jobs, and what helps.
    package var complaint: (sentence: String, command: String)? {
        guard isStranded else { return nil }
        let jobs = ready + waiting
        if jobs == 0 {
            return ("build \(build) gets new jobs, and no worker has it", "millrace versions rollback")
        }
        return (
            "\(Humane.count(jobs, "job")) \(jobs == 1 ? "waits" : "wait") for build \(build), and no worker has it",
            "millrace versions release \(build)"
        )
    }
}
