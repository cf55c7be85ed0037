import Faults
import FoundationEssentials
import JSON
import Supervision
import Transfers

/// The part of a call that both formats share: a request whose answer is a stream of events.
struct AITransfer: Sendable {
    let client: HTTPClient

    static func address(_ base: String, _ path: String) -> String {
        var base = base
        while base.hasSuffix("/") { base.removeLast() }
        return base + path
    }

    static func request(_ base: String, _ path: String, _ body: [UInt8]) -> HTTPRequest {
        var request = HTTPRequest("POST", address(base, path), body: .bytes(body))
        request.headers.add("Content-Type", "application/json")
        request.headers.add("Accept", "text/event-stream")
        return request
    }

    /// Calls `each` for every event, until it says that the answer is whole.
    ///
    /// - Throws: a `Fault`, also when the stream ends before.
    func run(
        _ request: HTTPRequest, _ limits: AILimits, meter: AIMeter, call: Call,
        each: (EventStreamReader.Event) throws -> Bool
    ) async throws {
        var request = request
        request.limits.total = limits.total
        request.limits.stall = limits.stall
        request.limits.bodyBytes = 16 << 20
        // Asking once more costs tokens and changes nothing, but the budget of retries is ours to spend.
        request.isRepeatable = false
        do {
            try await client.stream(request) { head, body in
                call.heard(AIPace.notes(head.headers.pairs, now: Date().timeIntervalSince1970))
                guard head.status == 200 else {
                    throw try await AIPace.fault(head, whole(body, most: 65_536))
                }
                meter.begin()
                var reader = EventStreamReader()
                while let bytes = try await body.next() {
                    for event in try reader.take(bytes) where try each(event) { return }
                }
                throw Fault(.unknown, code: "200", "the answer was cut off")
            }
        } catch let error as TransferError {
            if error.outcomeIsUnknown { meter.begin() }
            throw Fault(transfer: error)
        } catch is EventStreamReader.TooLong {
            throw Fault(.transient, code: "200", "an event of the answer is too large")
        } catch let problem as JSONProblem {
            throw Fault(.transient, code: "200", "an event of the answer is not JSON: \(problem.complaint)")
        }
    }

    private func whole(_ body: HTTPBody, most: Int) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < most, let more = try await body.next() { bytes += more }
        return bytes
    }
}

/// What a provider's headers and errors say about the next call.
enum AIPace {
    /// The limit of requests, and a pause where the tokens of a window are used up.
    static func notes(_ headers: [(name: String, value: String)], now: Double) -> RateNotes {
        var notes = RateNotes(headers: headers, now: now)
        var tokensLeft: Double?
        var tokensReset: Duration?
        for (name, value) in headers {
            switch name.lowercased() {
            case "x-ratelimit-limit-requests", "anthropic-ratelimit-requests-limit": notes.limit = Double(value)
            case "x-ratelimit-remaining-requests", "anthropic-ratelimit-requests-remaining":
                notes.remaining = Double(value)
            case "x-ratelimit-reset-requests", "anthropic-ratelimit-requests-reset":
                notes.reset = span(value, now: now)
            case "x-ratelimit-remaining-tokens", "anthropic-ratelimit-tokens-remaining": tokensLeft = Double(value)
            case "x-ratelimit-reset-tokens", "anthropic-ratelimit-tokens-reset": tokensReset = span(value, now: now)
            default: break
            }
        }
        if let tokensLeft, tokensLeft < 1, let tokensReset, notes.retryAfter == nil { notes.retryAfter = tokensReset }
        return notes
    }

    /// `6m0s`, `1.5s`, `20ms`, a number of seconds, or a time as RFC 3339 writes it.
    static func span(_ text: String, now: Double) -> Duration? {
        if let then = try? Date(text, strategy: .iso8601) {
            return .seconds(min(max(0, then.timeIntervalSince1970 - now), 86_400))
        }
        if let seconds = Double(text) { return seconds >= 0 && seconds.isFinite ? .seconds(min(seconds, 86_400)) : nil }
        var total = 0.0
        var rest = Substring(text)
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isNumber || $0 == "." }
            guard let number = Double(digits) else { return nil }
            rest = rest[digits.endIndex...]
            let unit = rest.prefix { !$0.isNumber }
            rest = rest[unit.endIndex...]
            switch unit {
            case "h": total += number * 3600
            case "m": total += number * 60
            case "s": total += number
            case "ms": total += number / 1000
            default: return nil
            }
        }
        return text.isEmpty ? nil : .seconds(min(total, 86_400))
    }

    /// Of an answer that is no stream. The provider's message may repeat the prompt, so only its code is kept.
    static func fault(_ head: HTTPHead, _ body: [UInt8]) -> Fault {
        let error = (try? JSONValue.read(body))?["error"]
        let name = [error?["code"]?.text, error?["type"]?.text].compactMap { $0 }.first { names[$0] != nil }
        let wait = RateNotes(headers: head.headers.pairs, now: Date().timeIntervalSince1970).retryAfter
        let code = name.map { "\(head.status) \($0)" } ?? "\(head.status)"
        return fault(name, status: head.status, code: code, wait: wait)
    }

    /// Of an error within a stream.
    static func fault(inStream error: JSONValue) -> Fault {
        let name = [error["code"]?.text, error["type"]?.text].compactMap { $0 }.first { names[$0] != nil }
        return fault(name, status: 500, code: name ?? "error in the stream", wait: nil)
    }

    private static func fault(_ name: String?, status: Int, code: String, wait: Duration?) -> Fault {
        let kind =
            name.flatMap { names[$0] } ?? (status == 529 ? .unavailable : ErrorClass(http: status) ?? .unsupported)
        return Fault(kind, code: code, "the provider answered with an error", wait: wait)
    }

    private static let names: [String: ErrorClass] = [
        "insufficient_quota": .quota, "billing_error": .quota, "rate_limit_exceeded": .throttled,
        "rate_limit_error": .throttled, "overloaded_error": .unavailable, "api_error": .transient,
        "server_error": .transient, "authentication_error": .authentication, "invalid_api_key": .authentication,
        "permission_error": .permission, "not_found_error": .notFound, "model_not_found": .notFound,
        "context_length_exceeded": .tooLarge, "request_too_large": .tooLarge,
        "content_policy_violation": .permission, "content_filter": .permission,
    ]
}
