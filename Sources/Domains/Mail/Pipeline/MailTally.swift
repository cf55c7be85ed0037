/// Counts of message outcomes in this process since its start, for metrics.
package struct MailTally: Sendable, Equatable {
    package enum Outcome: String, CaseIterable, Sendable {
        /// The provider took it.
        case accepted
        /// It will never be sent.
        case failed
        /// Certainly not taken: it goes later, elsewhere, or alone.
        case refused
        /// Unknown so far; the request is repeated unchanged.
        case unknown
        /// Unknown, and a person has to find out.
        case parked
    }

    /// By provider.
    package internal(set) var counts: [String: [Outcome: Int]] = [:]

    mutating func count(_ resolution: SendMachine.Resolution, by provider: String) {
        let outcome: Outcome =
            switch resolution {
            case .accepted: .accepted
            case .failed: .failed
            case .elsewhere, .later, .alone: .refused
            case .resend, .doubtful: .unknown
            case .parked: .parked
            }
        counts[provider, default: [:]][outcome, default: 0] += 1
    }
}
