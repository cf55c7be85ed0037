import FoundationEssentials
package import MillraceJobs
package import MillraceQueues

/// Turns what a run said into what the database is told. Pure.
package struct OutcomeMapper: Sendable {
    package enum Said: Sendable {
        case verdict(Verdict)
        /// It threw: a sentence, and whether trying again can help.
        case threw(String, Retry)
        /// It waits, whatever its handler has made of that: the database knows.
        case waits
    }

    /// Far beyond any sense, and well within what Postgres can count: it refuses a flush as a whole.
    static let longestWait = Duration.days(3650)

    package var retries: RetryPolicy
    package var maxAttempts: Int

    package init(retries: RetryPolicy, maxAttempts: Int) {
        self.retries = retries
        self.maxAttempts = maxAttempts
    }

    /// nil: the lease is lost, and there is nothing to tell.
    package func end(
        _ job: Claimed, said: Said, cancelled reason: CancelReason?, milliseconds: Int32,
        jitter: @autoclosure () -> Double
    ) -> Ended? {
        func ended(_ outcome: Outcome, _ error: String? = nil, wait: Duration? = nil) -> Ended {
            Ended(
                job: job, outcome: outcome, milliseconds: milliseconds, error: error.map(Self.bounded),
                wait: wait.map { min($0, Self.longestWait) })
        }
        func again(_ why: String, after pause: Duration?) -> Ended {
            let attempt = Int(job.attempt) + 1
            guard attempt < maxAttempts else {
                return ended(.dead, attempt == 1 ? why : "attempt \(attempt) of \(maxAttempts): \(why)")
            }
            let wait = pause ?? retries.pause(afterAttempt: attempt, fraction: jitter())
            return ended(.retried, why, wait: wait)
        }
        if reason == .leaseLost { return nil }
        switch said {
        case .waits:
            var end = ended(.waiting)
            end.isRecorded = true
            return end
        case .verdict(.done): return ended(.succeeded)
        case .verdict(.recorded):
            var end = ended(.succeeded)
            end.isRecorded = true
            return end
        case .verdict(.discard(let why)): return ended(.dead, why.isEmpty ? "discarded without a reason" : why)
        case .verdict(.snooze(let pause)):
            return reason == .requested ? ended(.cancelled) : ended(.snoozed, wait: max(.zero, pause))
        case .verdict(.retry(let after, let why)):
            return reason == .requested ? ended(.cancelled) : again(why, after: after)
        case .verdict(.waiting(let step)):
            let why = "the run was said to wait at step \(step), and no wait is on record"
            return reason == .requested ? ended(.cancelled) : again(why, after: nil)
        case .threw(let why, let retry):
            switch reason {
            case .requested: return ended(.cancelled)
            case .stopping, .cutOff: return ended(.released)
            case .timeout: return again("timed out: \(why)", after: nil)
            case .leaseLost: return nil
            case nil: break
            }
            switch retry {
            case .never: return ended(.dead, why)
            case .usual: return again(why, after: nil)
            case .after(let pause): return again(why, after: max(.zero, pause))
            }
        }
    }

    /// What is kept of an error: no more than 4,000 characters, and nothing that Postgres cannot store.
    static func bounded(_ text: String) -> String {
        let clean = text.unicodeScalars.contains("\0") ? text.replacing("\0", with: "␀") : text
        return clean.count > 4000 ? String(clean.prefix(4000)) + "…" : clean
    }
}
