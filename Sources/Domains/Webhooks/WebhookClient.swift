package import CloudEvents
import Faults
package import FoundationEssentials
package import Signatures
package import Supervision
import Synchronization
package import Traces
package import Transfers

/// Makes the requests: handshakes, and signed deliveries of events.
package struct WebhookClient: Sendable {
    package let client: HTTPClient
    package let supervisor: Supervisor
    /// The DNS name by which targets know us.
    package let origin: String
    /// Whether an operator has set it; otherwise it is this machine's name, which targets cannot judge by.
    package let knowsOrigin: Bool
    package let timeout: Duration
    let now: @Sendable () -> Date

    package init(
        client: HTTPClient, supervisor: Supervisor, origin: String, knowsOrigin: Bool = true, timeout: Duration,
        now: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.client = client
        self.supervisor = supervisor
        self.origin = origin
        self.knowsOrigin = knowsOrigin
        self.timeout = timeout
        self.now = now
    }

    /// The code of a fault of this worker: its settings forbid the address.
    private static let forbidden = "not allowed here"

    package static func provider(of webhook: String) -> String { "webhook:\(webhook)" }

    /// Asks whether the target wants our events.
    package func ask(_ webhook: String, at url: String) async -> TargetConsent {
        var request = request("OPTIONS", url)
        request.headers.add("WebHook-Request-Origin", origin)
        let asked = request
        let heard = Mutex<TargetConsent?>(nil)
        do {
            return try await supervisor.call(Self.provider(of: webhook), deadline: timeout) { call in
                let response = try await send(asked)
                let notes = RateNotes(headers: response.headers.pairs, now: now().timeIntervalSince1970)
                let consent = TargetConsent(
                    status: response.status, allowedOrigins: response.headers.all("WebHook-Allowed-Origin"),
                    allowedRate: response.headers["WebHook-Allowed-Rate"], retryAfter: notes.retryAfter, origin: origin,
                    knowsOrigin: knowsOrigin)
                heard.withLock { $0 = consent }
                if case .retry(let why, let wait) = consent {
                    throw Fault(ErrorClass(http: response.status) ?? .transient, why, wait: wait)
                }
                return consent
            }
        } catch let refusal as CallRefusal {
            return .later(refusal.description, refusal.pause())
        } catch {
            if let consent = heard.withLock({ $0 }) { return consent }
            guard let fault = error as? Fault else { return .retry("the call was broken off", nil) }
            if fault.code == Self.forbidden { return .passed(fault.what) }
            // An invalid address stays invalid, so it is not tried again.
            if fault.kind == .permission { return .refused(fault.what) }
            return .retry(fault.what, nil)
        }
    }

    /// - Parameters:
    ///   - id: The same for every sending of the same message.
    ///   - traces: The places in traces that its events belong to. The request names the call's own.
    package func deliver(
        _ message: EventMessage, count: Int, id: String, to webhook: String, at url: String,
        signedWith secrets: [Webhook.Secret], traces: [TraceContext] = []
    ) async -> TargetAnswer {
        var request = request("POST", url)
        for field in message.fields { request.headers.add(field.name, field.value) }
        let timestamp = Int(now().timeIntervalSince1970)
        request.headers.add("webhook-id", id)
        request.headers.add("webhook-timestamp", "\(timestamp)")
        request.headers.add("webhook-signature", Webhook.sign(message.body, id: id, at: timestamp, with: secrets))
        request.headers.add("WebHook-Request-Origin", origin)
        request.body = .bytes(message.body)
        // The id stays the same, so a receiver can recognise a repeated delivery.
        request.isRepeatable = true
        let asked = request
        let heard = Mutex<TargetAnswer?>(nil)
        do {
            return try await supervisor.call(Self.provider(of: webhook), deadline: timeout, places: traces) { call in
                let response = try await send(asked.carryingTrace)
                let notes = RateNotes(headers: response.headers.pairs, now: now().timeIntervalSince1970)
                call.heard(notes)
                let verdict = TargetAnswer(status: response.status, retryAfter: notes.retryAfter, count: count)
                heard.withLock { $0 = verdict }
                if let fault = verdict.fault, fault.kind.bearing != .healthy { throw fault }
                return verdict
            }
        } catch let refusal as CallRefusal {
            return .later(refusal.pause(), refusal.description)
        } catch is CancellationError {
            return heard.withLock { $0 } ?? .later(.seconds(1), "the worker stops")
        } catch {
            if let verdict = heard.withLock({ $0 }) { return verdict }
            if let fault = error as? Fault {
                if fault.code == Self.forbidden { return .passed(fault) }
                return fault.kind == .cancelled ? .later(.seconds(1), "the worker stops") : .retry(fault, code: nil)
            }
            return .retry(Fault(.internal, "the call was broken off"), code: nil)
        }
    }

    private func request(_ method: String, _ url: String) -> HTTPRequest {
        var request = HTTPRequest(method, url)
        request.limits.total = timeout
        request.limits.connect = min(timeout, .seconds(5))
        request.limits.bodyBytes = 1 << 20
        return request
    }

    private func send(_ request: HTTPRequest) async throws(Fault) -> HTTPResponse {
        do throws(TransferError) {
            return try await client.send(request)
        } catch {
            let kind: ErrorClass =
                switch error.kind {
                case .cancelled, .closed: .cancelled
                case .refused, .invalid: .permission
                case .timedOut: .timeout
                case .resolve, .connect, .tls, .dropped: .unavailable
                case .authentication, .tooLarge, .malformed, .redirect: .transient
                case .source, .internal: .internal
                }
            if error.kind == .refused {
                throw Fault(
                    kind, code: Self.forbidden,
                    error.sentence + "; a host of your own is named in MILLRACE_WEBHOOK_ALLOW of the workers")
            }
            throw Fault(kind, error.sentence)
        }
    }
}

extension HTTPRequest {
    /// The same request, with the headers of W3C Trace Context where it is made within a trace.
    fileprivate var carryingTrace: HTTPRequest {
        guard let place = TraceContext.current else { return self }
        var request = self
        request.headers.add("traceparent", place.traceparent)
        if let state = place.state { request.headers.add("tracestate", state) }
        return request
    }
}
