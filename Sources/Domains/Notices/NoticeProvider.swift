package import Faults
package import FoundationEssentials
package import Supervision

/// What a provider said to a sending.
package enum NoticeOutcome: Sendable, Equatable {
    case accepted(id: String?)
    /// The device is no more; since when, if that was told.
    case gone(Fault, since: Date? = nil)
    /// Trying again would not help.
    case refused(Fault)
    /// Nothing was sent, and it may be tried again.
    case failed(Fault)
    /// It may have been sent.
    case unknown(Fault)

    package var fault: Fault? {
        switch self {
        case .accepted: nil
        case .gone(let fault, _), .refused(let fault), .failed(let fault), .unknown(let fault): fault
        }
    }
}

/// Brings sendings to one provider.
package protocol NoticeProvider: Sendable {
    /// As the supervisor knows it.
    var name: String { get }
    func send(_ sending: Sending, _ words: NoticeWords, call: Call) async -> NoticeOutcome
}

extension NoticeOutcome {
    /// A provider's no: final, unless the error table says that trying again helps. A fault of ours or a missing right may be mended by
    /// an operator, and an alarm is worth the wait.
    static func said(_ fault: Fault, isAlarm: Bool) -> NoticeOutcome {
        switch fault.kind.retry {
        case .never: .refused(fault)
        case .after, .sameKey: .failed(fault)
        case .elsewhere: .failed(fault)
        }
    }
}
