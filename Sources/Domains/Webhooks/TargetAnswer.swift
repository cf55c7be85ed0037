package import Faults

/// The outcome of a request to a target.
package enum TargetAnswer: Sendable, Equatable {
    case delivered(code: Int)
    /// Try again later; it counts as an attempt.
    case retry(Fault, code: Int?)
    /// Never again: it would be refused again.
    case refused(Fault, code: Int)
    /// The target wants no more events.
    case gone
    /// The target wants a pause of this length; nothing is wrong with the event.
    case throttled(Duration)
    /// No request was made, and none will be for this long.
    case later(Duration, String)
    /// This worker's settings forbid the address; another worker's may allow it.
    case passed(Fault)
    /// One event spoilt the request for the others: send each alone.
    case alone(Fault, code: Int)

    /// The longest pause that a target can ask for: events are not kept longer.
    private static let longest = Duration.seconds(14 * 86_400)

    /// - Parameter count: how many events were in the request.
    package init(status: Int, retryAfter: Duration?, count: Int) {
        switch status {
        case 200...299: self = .delivered(code: status)
        case 410: self = .gone
        case 429: self = .throttled(min(max(retryAfter ?? .seconds(60), .seconds(1)), Self.longest))
        case 400, 413, 415, 422:
            let fault = Self.fault(status, wait: nil)
            if count > 1, status != 415 {
                self = .alone(fault, code: status)
            } else if status == 413 || status == 415 {
                self = .refused(fault, code: status)
            } else {
                self = .retry(fault, code: status)
            }
        default: self = .retry(Self.fault(status, wait: retryAfter.map { min($0, Self.longest) }), code: status)
        }
    }

    private static func fault(_ status: Int, wait: Duration?) -> Fault {
        let what =
            switch status {
            case 300...399: "it answered \(status): a redirect is not followed"
            case 413: "it answered 413: the event is too large for it"
            case 415: "it answered 415: it does not take this kind of message"
            default: "it answered \(status)"
            }
        return Fault(kind(status), code: "\(status)", what, wait: wait)
    }

    /// A target's refusal is no fault of ours, so nothing here is critical.
    private static func kind(_ status: Int) -> ErrorClass {
        switch ErrorClass(http: status) {
        case .authentication, .quota: .permission
        case .cancelled, .internal, nil: .unsupported
        case let kind?: kind
        }
    }

    /// The word that the database stores.
    var word: String {
        switch self {
        case .delivered: "delivered"
        case .retry: "retry"
        case .refused: "refused"
        case .gone: "gone"
        case .throttled: "throttled"
        case .later: "later"
        case .passed: "passed"
        case .alone: "alone"
        }
    }

    var code: Int? {
        switch self {
        case .delivered(let code), .refused(_, let code), .alone(_, let code): code
        case .retry(_, let code): code
        case .gone: 410
        case .throttled: 429
        case .later, .passed: nil
        }
    }

    package var why: String? {
        switch self {
        case .delivered: nil
        case .retry(let fault, _), .refused(let fault, _), .alone(let fault, _), .passed(let fault): fault.what
        case .gone: "it answered 410: it wants no more events"
        case .throttled: "it answered 429: too fast"
        case .later(_, let why): why
        }
    }

    var hold: Duration? {
        switch self {
        case .throttled(let wait), .later(let wait, _): wait
        case .delivered, .retry, .refused, .gone, .alone, .passed: nil
        }
    }

    /// What the supervisor is told.
    var fault: Fault? {
        switch self {
        case .retry(let fault, _): fault
        case .throttled(let wait): Fault(.throttled, code: "429", "it answered 429: too fast", wait: wait)
        case .delivered, .refused, .gone, .later, .alone, .passed: nil
        }
    }
}
