/// A target's answer to the handshake, which asks whether it wants our events. Only the headers count, never the status.
package enum TargetConsent: Sendable, Equatable {
    /// At most `rate` requests a minute; nil: no limit.
    case allowed(rate: Int?)
    case refused(String)
    /// No answer, or an answer without the header.
    case retry(String, Duration?)
    /// It was not asked, and will not be for this long.
    case later(String, Duration)
    /// This worker's settings forbid the request; another worker's may allow it.
    case passed(String)

    /// The rate for a target that agrees without naming one.
    package static let cautiousRate = 120

    package init(
        status: Int, allowedOrigins: [String], allowedRate: String?, retryAfter: Duration?, origin: String,
        knowsOrigin: Bool = true
    ) {
        let names = allowedOrigins.flatMap { $0.split(separator: ",") }.map { Self.trimmed($0).lowercased() }
        guard names.contains("*") || names.contains(origin.lowercased()) else {
            switch status {
            case 408, 429, 500...599: self = .retry("it answered \(status) when asked for its consent", retryAfter)
            default:
                if names.isEmpty {
                    self = .refused("it answered \(status) without WebHook-Allowed-Origin: it does not consent")
                } else if knowsOrigin {
                    self = .refused("it consents to events from others, but not from \(origin)")
                } else {
                    self = .passed(
                        "it consents to events from others, but not from \(origin): set MILLRACE_EVENT_SOURCE for all workers"
                    )
                }
            }
            return
        }
        guard let text = allowedRate.map({ Self.trimmed($0[...]) }) else {
            self = .allowed(rate: Self.cautiousRate)
            return
        }
        if text == "*" {
            self = .allowed(rate: nil)
        } else if let rate = Int(text), rate >= 1, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            self = .allowed(rate: min(rate, 1_000_000))
        } else {
            self = .refused("its WebHook-Allowed-Rate is neither * nor a number of requests a minute")
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        var rest = text
        while rest.first == " " { rest = rest.dropFirst() }
        while rest.last == " " { rest = rest.dropLast() }
        return String(rest)
    }
}
