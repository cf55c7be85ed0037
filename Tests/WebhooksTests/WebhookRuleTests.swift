import Encryption
import Faults
import Testing

@testable import Webhooks

@Suite struct WebhookRuleTests {
    @Test func `the ladder ends after three days`() {
        #expect(RetrySchedule.wait(after: 0, spread: 0) == .seconds(5))
        #expect(RetrySchedule.wait(after: 8, spread: 1) == .seconds(24 * 3600) * 1.1)
        #expect(RetrySchedule.wait(after: 9, spread: 0) == nil)
        #expect(RetrySchedule.steps.reduce(.zero, +) > .seconds(3 * 86_400))
    }

    @Test func `each status has its verdict`() {
        func word(_ status: Int, count: Int = 1) -> String {
            TargetAnswer(status: status, retryAfter: nil, count: count).word
        }
        for status in [200, 201, 202, 204] { #expect(word(status) == "delivered") }
        for status in [301, 302, 307, 400, 401, 403, 404, 408, 500, 502, 503] { #expect(word(status) == "retry") }
        #expect(word(410) == "gone" && word(429) == "throttled" && word(415) == "refused" && word(413) == "refused")
        #expect(word(413, count: 2) == "alone" && word(400, count: 2) == "alone" && word(415, count: 2) == "refused")
        #expect(TargetAnswer(status: 429, retryAfter: .seconds(3600), count: 1) == .throttled(.seconds(3600)))
        #expect(TargetAnswer(status: 429, retryAfter: nil, count: 1) == .throttled(.seconds(60)))
        // A stranger's 401 is nobody's alarm.
        for status in 300...599 {
            #expect(
                TargetAnswer(status: status, retryAfter: nil, count: 1).fault.map { $0.kind.severity < .critical }
                    ?? true)
        }
    }

    @Test func `consent is in the headers alone`() {
        func consent(_ status: Int, _ origins: [String], _ rate: String? = nil) -> TargetConsent {
            TargetConsent(
                status: status, allowedOrigins: origins, allowedRate: rate, retryAfter: nil, origin: "events.example")
        }
        #expect(consent(200, ["*"], "*") == .allowed(rate: nil))
        #expect(consent(405, ["Events.Example"], "30") == .allowed(rate: 30))
        #expect(consent(200, ["other.example, events.example"]) == .allowed(rate: TargetConsent.cautiousRate))
        for bad in [consent(200, []), consent(404, []), consent(200, ["other.example"], "*")] {
            guard case .refused = bad else {
                Issue.record("\(bad)")
                continue
            }
        }
        for rate in ["0", "-1", "fast", "+5", ""] {
            guard case .refused = consent(200, ["*"], rate) else {
                Issue.record("\(rate)")
                continue
            }
        }
        guard case .retry = consent(503, []), case .retry = consent(429, []) else {
            Issue.record("a busy target is asked again")
            return
        }
    }

    @Test func `a secret opens for its own target, with its key, and in no other way`() throws {
        let (keys, others) = (try Keyring([.random(id: "a")]), try Keyring([.random(id: "b")]))
        let secret = SigningSecret.make()
        let sealed = String(decoding: try SigningSecret.seal(secret, of: "one", with: keys), as: UTF8.self)
        #expect(!sealed.contains(secret.dropFirst(6)))
        #expect(throws: Never.self) { try SigningSecret.open(sealed, of: "one", with: keys) }
        #expect(throws: SealError.damaged(key: "a")) { try SigningSecret.open(sealed, of: "two", with: keys) }
        #expect(throws: SealError.missingKey("a")) { try SigningSecret.open(sealed, of: "one", with: others) }
        #expect(throws: Never.self) { try SigningSecret.open("\"\(secret)\"", of: "one", with: .empty) }
        let both = try Keyring([try #require(others.keys.first), try #require(keys.keys.first)])
        let again = try SigningSecret.reseal(sealed, of: "one", with: both)
        #expect(throws: Never.self) {
            try SigningSecret.open(String(decoding: again, as: UTF8.self), of: "one", with: others)
        }
    }

    @Test func `a batch has one id for the same events`() {
        #expect(DeliveryBatch.batchID(["a", "b"]) == DeliveryBatch.batchID(["a", "b"]))
        #expect(DeliveryBatch.batchID(["a", "b"]) != DeliveryBatch.batchID(["b", "a"]))
    }
}
