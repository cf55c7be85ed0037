package import Faults
package import Supervision

/// The result of sending one letter to a provider.
package enum SendOutcome: Sendable, Equatable {
    /// Taken, under the provider's own id where it gives one.
    case accepted(id: String?)
    /// Certainly not taken.
    case refused(Fault)
    /// Certainly not taken, for a reason that has nothing to do with the letter: the rate, or a quota.
    case throttled(Fault)
    /// Nobody knows. Never treated as refused.
    case unknown(Fault)
}

extension SendOutcome {
    /// The word that the database stores.
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
    /// How long the same key makes the same request happen only once; nil: it does not.
    package var keyHolds: Duration?
    /// Whether we can ask it later about a letter that it took.
    package var answersLater = false
    package var copies = true
    /// Whether it may be called at all when an earlier attempt, here or elsewhere, may have worked.
    package var mayFollowUnknown = true

    package init() {}
}

/// A provider of mail. It makes one request and reports the result of each letter. The mail service decides when, how often and through
/// which provider to try again.
package protocol MailProvider: Sendable {
    /// The name in supervision, records and configuration: resend, smtp, supabase, outbox.
    var name: String { get }
    var capabilities: Capabilities { get }

    /// Why this provider cannot send this letter, judged without a request; nil when it can.
    func objection(to letter: Letter) -> String?

    /// Sends the letters in one request under one key. Returns one outcome per letter, in the same order. `call` is told what the provider
    /// says about its pace.
    func send(_ letters: [Letter], key: String, call: Call) async -> [SendOutcome]

    /// The status of a letter that the provider may have taken, found by the provider's id; nil when it cannot say.
    func status(of id: String, call: Call) async throws(Fault) -> String?
}
