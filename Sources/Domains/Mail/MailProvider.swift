package import Faults
package import Supervision

/// What came of handing one letter to a provider.
package enum SendOutcome: Sendable, Equatable {
    /// Taken, under the provider's own id where it gives one.
    case accepted(id: String?)
    /// Not taken, for certain.
    case refused(Fault)
    /// Not taken for certain, and not for the letter's sake: the pace, or a quota.
    case throttled(Fault)
    /// Nobody knows. Never treated as refused.
    case unknown(Fault)
}

extension SendOutcome {
    /// As it is written down.
    package var word: String {
        switch self {
        case .accepted: "accepted"
        case .refused: "refused"
        case .throttled: "throttled"
        case .unknown: "unknown"
        }
    }

    package var fault: Fault? {
        switch self {
        case .accepted: nil
        case .refused(let fault), .throttled(let fault), .unknown(let fault): fault
        }
    }

    var providerID: String? {
        guard case .accepted(let id) = self else { return nil }
        return id
    }
}

/// What a provider can do with a letter.
package struct Capabilities: Sendable, Equatable {
    /// Letters in one request.
    package var batch = 1
    package var attachments = true
    /// Whether a request for several may hold letters with attachments.
    package var batchesAttachments = true
    /// Whether the same key makes the same request happen once, and for how long.
    package var keyHolds: Duration?
    /// Whether it can be asked what became of a letter it took.
    package var answersLater = false
    package var copies = true
    /// Whether it may be asked at all when an earlier attempt, here or elsewhere, may have worked.
    package var mayFollowUnknown = true

    package init() {}
}

/// A provider of mail. It makes one request, and says what came of each letter; when, how often and by whom it is asked again is not
/// its business.
package protocol MailProvider: Sendable {
    /// The name it is supervised, recorded and configured by: resend, smtp, supabase, outbox.
    var name: String { get }
    var capabilities: Capabilities { get }

    /// Why this letter can not go this way, before anything is asked of anybody; nil when it can.
    func objection(to letter: Letter) -> String?

    /// Hands the letters over in one request under one key. As many answers as letters, in their order. The call is told what the
    /// provider says about its pace.
    func send(_ letters: [Letter], key: String, call: Call) async -> [SendOutcome]

    /// What the provider knows of a letter it may have taken, asked by its own id; nil when it can not say.
    func status(of id: String, call: Call) async throws(Fault) -> String?
}
