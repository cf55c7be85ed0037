package import Faults
package import FoundationEssentials
package import Supervision

/// A provider's answer to a sending.
package enum NoticeOutcome: Sendable, Equatable {
    case accepted(id: String?)
    /// The device is gone; since when, if the provider says so.
    case gone(Fault, since: Date? = nil)
    /// Trying again would not help.
    case refused(Fault)
    /// Nothing was sent, and it may be tried again.
    case failed(Fault)
    /// It may have been sent.
    case unknown(Fault)
    /// The provider was not called, so this was no try.
    case notCalled(CallRefusal)

    package var fault: Fault? {
        switch self {
        case .accepted: nil
        case .notCalled(let refusal): refusal.fault
        case .gone(let fault, _), .refused(let fault), .failed(let fault), .unknown(let fault): fault
        }
    }
}

/// Brings sendings to one provider.
package protocol NoticeProvider: Sendable {
    /// The name that the supervisor uses.
    var name: String { get }
    func send(_ sending: Sending, _ words: NoticeWords, call: Call) async -> NoticeOutcome
}

extension NoticeOutcome {
    /// A provider's refusal is final, unless the error table says that a retry may help. A fault of ours or a missing right can be
    /// corrected by an operator, so an alarm is retried then, too.
    static func said(_ fault: Fault, isAlarm: Bool) -> NoticeOutcome {
        switch fault.kind.retry {
        case .never: .refused(fault)
        case .after, .sameKey: .failed(fault)
        case .elsewhere: .failed(fault)
        }
    }
}
