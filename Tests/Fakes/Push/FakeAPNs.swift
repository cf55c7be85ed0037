import FoundationEssentials
import Synchronization

/// Apple's push service as it behaves: tokens that are checked and counted, devices that are known, gone or somebody else's.
package final class FakeAPNs: Sendable {
    package struct Rules: Sendable {
        /// Devices that have gone, and since when (in milliseconds since 1970).
        package var gone: [String: Int64] = [:]
        package var bad: Set<String> = []
        /// How many tokens of a team are accepted during a test.
        package var tokens = 2
        /// Every request whose number is in here is answered by something else.
        package var special: [Int: PushAnswer] = [:]
        /// All are, until there is none.
        package var always: PushAnswer?
        /// Tokens that are over.
        package var expired: Set<String> = []

        package init() {}
    }

    private struct State {
        var rules = Rules()
        var tokens: [String] = []
        var shown: [(device: String, id: String)] = []
    }

    private let fake: FakePush
    private let state = Mutex(State())
    package let keys = FakeKeys(.p256)
    package let team: String
    package let keyID: String

    package init(team: String = "TEAM123456", keyID: String = "KEY1234567") throws {
        self.team = team
        self.keyID = keyID
        fake = try FakePush()
        fake.change { [weak self] request, number in
            self?.answer(request, number) ?? PushAnswer(503)
        }
    }

    package var url: String { fake.url }
    package var port: Int { fake.port }
    package var requests: [PushRequest] { fake.requests }
    /// Each token that was taken, in order.
    package var tokens: [String] { state.withLock { $0.tokens } }
    /// What devices show: the last notice of each name.
    package var shown: [(device: String, id: String)] { state.withLock { $0.shown } }

    package func change(_ change: @Sendable (inout Rules) -> Void) { state.withLock { change(&$0.rules) } }
    package func stop() { fake.stop() }

    private func answer(_ request: PushRequest, _ number: Int) -> PushAnswer {
        let problem = check(request)
        return state.withLock { state in
            if let special = state.rules.special[number] ?? state.rules.always {
                if special.reaction == .lose { show(request, &state) }
                return special
            }
            if let problem { return problem }
            let token = String((request["authorization"] ?? "").dropFirst("bearer ".count))
            if state.rules.expired.contains(token) { return Self.no(403, "ExpiredProviderToken") }
            if !state.tokens.contains(token) {
                guard state.tokens.count < state.rules.tokens else {
                    return Self.no(429, "TooManyProviderTokenUpdates")
                }
                state.tokens.append(token)
            }
            let device = Self.device(request)
            if let since = state.rules.gone[device] {
                return PushAnswer(410, "{\"reason\":\"Unregistered\",\"timestamp\":\(since)}")
            }
            if state.rules.bad.contains(device) { return Self.no(400, "BadDeviceToken") }
            show(request, &state)
            return PushAnswer(200, headers: ["apns-id": request["apns-id"] ?? "?"])
        }
    }

    private func show(_ request: PushRequest, _ state: inout State) {
        let (device, id) = (Self.device(request), request["apns-collapse-id"] ?? "")
        state.shown.removeAll { $0.device == device && $0.id == id }
        state.shown.append((device, id))
    }

    private static func device(_ request: PushRequest) -> String {
        String(request.path.split(separator: "/").last ?? "")
    }

    private func check(_ request: PushRequest) -> PushAnswer? {
        guard request.method == "POST" else { return Self.no(405, "MethodNotAllowed") }
        guard request.path.hasPrefix("/3/device/") else { return Self.no(404, "BadPath") }
        guard let header = request["authorization"], header.hasPrefix("bearer ") else {
            return Self.no(403, "MissingProviderToken")
        }
        let token = String(header.dropFirst("bearer ".count))
        struct Claims: Decodable {
            var iss: String
            var iat: Double
        }
        guard let payload = keys.payload(of: token),
            let claims = try? JSONDecoder().decode(Claims.self, from: Data(payload.utf8)), claims.iss == team,
            let head = FakeKeys.decode(token.split(separator: ".").first ?? ""),
            String(decoding: head, as: UTF8.self).contains("\"kid\":\"\(keyID)\"")
        else { return Self.no(403, "InvalidProviderToken") }
        guard request["apns-topic"] != nil else { return Self.no(400, "MissingTopic") }
        guard let size = request["content-length"].flatMap(Int.init), size > 0 else {
            return Self.no(400, "PayloadEmpty")
        }
        guard size <= 4096 else { return Self.no(413, "PayloadTooLarge") }
        guard (request["apns-collapse-id"]?.utf8.count ?? 0) <= 64 else { return Self.no(400, "BadCollapseId") }
        return nil
    }

    package static func no(_ status: Int, _ reason: String, headers: [String: String] = [:]) -> PushAnswer {
        PushAnswer(status, "{\"reason\":\"\(reason)\"}", headers: headers)
    }
}
