/// Failed runs since the last beat that look alike: of one queue and kind, with errors that differ in numbers and ids only.
package struct FailureTally: Sendable, Equatable, Encodable {
    package static let mostJobs = 20

    package var queue: Int32
    package var kind: Int32
    /// One of the errors, as it was. The database decides what its group is called. nil: of several for which there was no room.
    package var error: String?
    package var failed = 0
    package var dead = 0
    /// Some of the jobs, the latest first.
    package var jobs: [Int64] = []
    /// The smallest and the largest id of all of them.
    package var lo = Int64.max
    package var hi = Int64.min

    package init(queue: Int32, kind: Int32, error: String?) {
        self.queue = queue
        self.kind = kind
        self.error = error
    }

    package mutating func add(job: Int64, isDead: Bool) {
        failed += 1
        if isDead { dead += 1 }
        jobs.removeAll { $0 == job }
        jobs.insert(job, at: 0)
        if jobs.count > Self.mostJobs { jobs.removeLast() }
        lo = min(lo, job)
        hi = max(hi, job)
    }

    /// Adds what was counted before this.
    package mutating func add(earlier other: FailureTally) {
        failed += other.failed
        dead += other.dead
        jobs = Array((jobs + other.jobs.filter { !jobs.contains($0) }).prefix(Self.mostJobs))
        lo = min(lo, other.lo)
        hi = max(hi, other.hi)
    }
}
