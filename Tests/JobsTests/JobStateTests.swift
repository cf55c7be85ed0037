import MillraceJobs
import Testing

@Suite struct JobStateTests {
    @Test func `the states have the names of the contract`() {
        #expect(
            JobState.allCases.map(\.rawValue)
                == ["ready", "scheduled", "blocked", "running", "succeeded", "cancelled", "dead"])
    }

    @Test func `a job is final when nothing more happens by itself`() {
        #expect(JobState.allCases.filter(\.isFinal) == [.succeeded, .cancelled, .dead])
    }

    @Test func `a kind that says nothing gets the usual treatment`() {
        struct Plain: Job {
            static let kind = "plain"
        }
        #expect(Plain.retries == .standard)
        #expect(Plain.timeout == nil)
        #expect(Plain.whenCutOff == .keepRunning)
    }

    @Test func `a new job has empty arguments and skips a held key`() {
        let job = NewJob(kind: "plain")
        #expect(job.args == Array("{}".utf8))
        #expect(job.onConflict == .skip)
        #expect(job.queue == nil && job.priority == nil && job.uniqueKey == nil && job.tags.isEmpty)
    }
}
