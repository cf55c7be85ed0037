import FoundationEssentials
import Synchronization

/// Google's two services as they behave: one that gives tokens for a signed assertion, one that takes messages with such a token.
package final class FakeFCM: Sendable {
    private struct State {
        var given = 0
        var gone: Set<String> = []
        var always: PushAnswer?
        var valid: Set<String> = []
    }

    private let fake: FakePush
    private let state = Mutex(State())
    package let keys = FakeKeys(.rsa)

    package init() throws {
        fake = try FakePush()
        fake.change { [weak self] request, _ in self?.answer(request) ?? PushAnswer(503) }
    }

    package var url: String { fake.url }
    /// How many tokens were given.
    package var given: Int { state.withLock { $0.given } }
    package var messages: [PushRequest] { fake.requests.filter { $0.path.hasSuffix("messages:send") } }

    package func lose(_ device: String) { state.withLock { _ = $0.gone.insert(device) } }
    package func always(_ answer: PushAnswer?) { state.withLock { $0.always = answer } }
    /// As when they run out before their time.
    package func forgetTokens() { state.withLock { $0.valid = [] } }
    package func stop() { fake.stop() }

    package var credentials: String {
        struct File: Encodable {
            var type = "service_account"
            var project_id = "an-app"
            var client_email = "push@an-app.iam.example"
            var private_key: String
            var private_key_id = "k1"
            var token_uri: String
        }
        let file = File(private_key: keys.pem, token_uri: "\(url)/token")
        return String(decoding: (try? JSONEncoder().encode(file)) ?? Data(), as: UTF8.self)
    }

    private func answer(_ request: PushRequest) -> PushAnswer {
        if request.path == "/token" {
            let assertion = request.body.split(separator: "=").last.map(String.init) ?? ""
            guard let payload = keys.payload(of: assertion), payload.contains("firebase.messaging"),
                payload.contains("push@an-app.iam.example")
            else { return PushAnswer(400, #"{"error":"invalid_grant"}"#) }
            return state.withLock { state in
                state.given += 1
                state.valid.insert("ya29.\(state.given)")
                return PushAnswer(200, #"{"access_token":"ya29.\#(state.given)","expires_in":3599}"#)
            }
        }
        guard request.path == "/v1/projects/an-app/messages:send" else { return PushAnswer(404, "{}") }
        return state.withLock { state in
            if let always = state.always { return always }
            let token = String((request["authorization"] ?? "").dropFirst("Bearer ".count))
            guard state.valid.contains(token) else {
                return PushAnswer(401, #"{"error":{"code":401,"status":"UNAUTHENTICATED"}}"#)
            }
            if state.gone.contains(where: { request.body.contains($0) }) {
                return PushAnswer(
                    404,
                    #"{"error":{"code":404,"status":"NOT_FOUND","details":[{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"UNREGISTERED"}]}}"#
                )
            }
            return PushAnswer(200, #"{"name":"projects/an-app/messages/1"}"#)
        }
    }
}
