package import Faults

/// A call that was not made. Nothing has left this process.
package struct CallRefusal: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Why: String, Sendable {
        case open
        case forced
        case ramping
        case pace
        case busy
        case retries
        /// The rest of a quota is kept for urgent calls.
        case reserve
    }

    package var provider: String
    package var why: Why
    package var reason: String?
    /// After what time another try may help. Who comes back then finds a place kept, where one is needed.
    package var wait: Duration

    package init(provider: String, why: Why, reason: String? = nil, wait: Duration) {
        self.provider = provider
        self.why = why
        self.reason = reason
        self.wait = wait
    }

    package var kind: ErrorClass {
        switch why {
        case .open, .forced, .ramping: .unavailable
        case .pace, .busy, .retries: .throttled
        case .reserve: .quota
        }
    }

    package var fault: Fault {
        Fault(kind, code: "not called: \(why.rawValue)", description, wait: wait)
    }

    /// The pause before the next try: as long as it says, but no longer than `most`, for an operator may allow calls sooner.
    package func pause(atMost most: Duration = .seconds(60)) -> Duration {
        min(max(wait, .milliseconds(100)), most)
    }

    package var description: String {
        let told = reason.map { ": \($0)" } ?? ""
        let sentence =
            switch why {
            case .open: "\(provider) is not called for now\(told)"
            case .forced: "an operator has stopped calls of \(provider)\(told)"
            case .ramping: "\(provider) has just come back, and gets only a part of its calls yet"
            case .pace: "\(provider) is called as often as it allows; the next place comes too late"
            case .busy: "all slots for calls of \(provider) were taken for too long"
            case .reserve: "what is left of the quota of \(provider) is kept for what cannot wait\(told)"
            case .retries: "too many of the calls of \(provider) are second attempts"
            }
        return "\(sentence); ask again in \(Int(wait.inSeconds.rounded(.up))) s"
    }
}
