import Faults
import FoundationEssentials
import JSON
package import Signatures
package import Supervision
import Synchronization
package import Transfers

/// Firebase Cloud Messaging, version 1 of its HTTP interface.
package struct FCMProvider: NoticeProvider {
    package struct Configuration: Sendable {
        package var credentials: GoogleCredentials
        package var base = "https://fcm.googleapis.com"
        package var timeout = Duration.seconds(15)

        package init(credentials: GoogleCredentials) { self.credentials = credentials }
    }

    package let name = "fcm"
    private let configuration: Configuration
    private let client: HTTPClient
    private let access: GoogleAccess

    package init(_ configuration: Configuration, client: HTTPClient) {
        self.configuration = configuration
        self.client = client
        access = GoogleAccess(
            configuration.credentials, scope: "https://www.googleapis.com/auth/firebase.messaging", client: client)
    }

    package func send(_ sending: Sending, _ words: NoticeWords, call: Call) async -> NoticeOutcome {
        let token: String
        do {
            token = try await access.token(for: call)
        } catch {
            return .failed((error as? Fault) ?? Fault(.unavailable, "there is no token for FCM: \(error)"))
        }
        let project = configuration.credentials.project
        var request = HTTPRequest(
            "POST", "\(configuration.base)/v1/projects/\(project)/messages:send",
            body: .bytes(Self.body(sending, words)))
        request.headers.add("Authorization", "Bearer \(token)")
        request.headers.add("Content-Type", "application/json")
        request.limits.total = configuration.timeout
        request.limits.bodyBytes = 64 << 10
        // The message has its own collapse key, so a device that gets it twice shows it once.
        request.isRepeatable = true
        do throws(TransferError) {
            let response = try await client.send(request)
            let delivery = Self.judge(response, isAlarm: sending.isAlarm)
            if response.status == 401 { access.refuse(token) }
            return delivery
        } catch {
            return .broken(error)
        }
    }

    /// FCM takes 4096 bytes: the least important parts are dropped first.
    static func body(_ sending: Sending, _ words: NoticeWords) -> [UInt8] {
        var body = words.body
        var facts = sending.data.texts.filter { name, _ in
            !["from", "message_type", "collapse_key"].contains(name) && !name.hasPrefix("google")
                && !name.hasPrefix("gcm")
        }
        while true {
            var data = facts
            data["notice"] = sending.id
            data["kind"] = sending.kind
            if let link = words.link { data["url"] = link }
            let seconds = max(0, Int(APNsProvider.expiry(of: sending).timeIntervalSince(sending.takenAt)))
            let android = JSONText.object([
                ("priority", sending.isAlarm ? "\"HIGH\"" : "\"NORMAL\""), ("ttl", "\"\(min(seconds, 2_419_200))s\""),
                ("collapse_key", JSONText.quoted(sending.replaces)),
                (
                    "notification",
                    JSONText.object(
                        [("tag", JSONText.quoted(sending.replaces))]
                            + (sending.isAlarm ? [("notification_priority", "\"PRIORITY_MAX\"")] : []))
                ),
            ])
            let message = JSONText.object([
                ("token", JSONText.quoted(sending.address)),
                (
                    "notification",
                    JSONText.object([
                        ("title", JSONText.quoted(words.title)), ("body", JSONText.quoted(body)),
                    ])
                ),
                (
                    "data",
                    JSONText.object(data.sorted { $0.key < $1.key }.map { ($0.key, JSONText.quoted($0.value)) })
                ), ("android", android),
            ])
            let text = JSONText.object([("message", message)])
            if text.utf8.count <= APNsPayload.most || (facts.isEmpty && body.isEmpty) { return Array(text.utf8) }
            if facts.isEmpty {
                body = String(body.unicodeScalars.prefix(body.unicodeScalars.count / 2))
            } else {
                facts = [:]
            }
        }
    }

    static func judge(_ response: HTTPResponse, isAlarm: Bool) -> NoticeOutcome {
        struct Answer: Decodable {
            struct Problem: Decodable {
                struct Detail: Decodable { var errorCode: String? }

                var status: String?
                var details: [Detail]?
            }

            var name: String?
            var error: Problem?
        }
        let answer = try? JSONDecoder().decode(Answer.self, from: Data(response.body))
        if (200...299).contains(response.status) { return .accepted(id: answer?.name) }
        let named = answer?.error?.details?.lazy.compactMap(\.errorCode).first ?? answer?.error?.status
        let reason = named.flatMap { name in
            name.utf8.count <= 64 && name.utf8.allSatisfy { $0 == UInt8(ascii: "_") || (0x41...0x5a).contains($0) }
                ? name : nil
        }
        let code = reason.map { "\(response.status) \($0)" } ?? "\(response.status)"
        let wait = RateNotes(headers: response.headers.pairs, now: Date().timeIntervalSince1970).retryAfter
        switch (response.status, reason) {
        case (_, "UNREGISTERED"?), (404, _):
            return .gone(Fault(.notFound, code: code, "the device is gone, or the app was removed from it"))
        case (401, _), (_, "THIRD_PARTY_AUTH_ERROR"?):
            return .failed(Fault(.authentication, code: code, "FCM does not accept the credentials: check their file"))
        case (429, _):
            return .failed(Fault(.throttled, code: code, "faster than FCM allows", wait: wait ?? .seconds(60)))
        case (500..., _):
            let kind = ErrorClass(http: response.status, name: reason) ?? .transient
            return .failed(Fault(kind, code: code, "FCM failed for now", wait: wait))
        default:
            let kind = ErrorClass(http: response.status, name: reason) ?? .invalid
            return .said(Fault(kind, code: code, "FCM does not accept this"), isAlarm: isAlarm)
        }
    }
}

/// A service account, as in Google's file.
package struct GoogleCredentials: Sendable, CustomStringConvertible, CustomReflectable {
    package let project: String
    let email: String
    let tokenURL: String
    let keyID: String?
    let key: SigningKey

    /// - Throws: a sentence that says what is wrong, without anything from the file.
    package init(json: [UInt8]) throws(SigningKey.Unusable) {
        struct File: Decodable {
            var project_id: String
            var client_email: String
            var private_key: String
            var private_key_id: String?
            var token_uri: String?
        }
        guard let file = try? JSONDecoder().decode(File.self, from: Data(json)) else {
            throw SigningKey.Unusable(
                description: "it is not a service account: it needs project_id, client_email and private_key")
        }
        guard (1...128).contains(file.project_id.utf8.count),
            file.project_id.utf8.allSatisfy({
                $0 == 0x2d || (0x30...0x39).contains($0) || (0x61...0x7a).contains($0) || $0 == 0x3a || $0 == 0x2e
            })
        else { throw SigningKey.Unusable(description: "its project_id is malformed") }
        project = file.project_id
        email = file.client_email
        tokenURL = file.token_uri ?? "https://oauth2.googleapis.com/token"
        keyID = file.private_key_id
        key = try SigningKey(pem: Array(file.private_key.utf8))
        guard key.algorithm == .rs256 else { throw SigningKey.Unusable(description: "its key is not one of RSA") }
    }

    package var description: String { "a service account" }
    package var customMirror: Swift.Mirror { Swift.Mirror(self, children: []) }
}

/// Google's access tokens: one request for all callers, and kept until shortly before they expire.
final class GoogleAccess: Sendable {
    private struct Held {
        var token: String
        var until: ContinuousClock.Instant
    }

    private let credentials: GoogleCredentials
    private let scope: String
    private let client: HTTPClient
    private let held = Mutex<Held?>(nil)

    init(_ credentials: GoogleCredentials, scope: String, client: HTTPClient) {
        self.credentials = credentials
        self.scope = scope
        self.client = client
    }

    func token(for call: Call) async throws -> String {
        if let held = held.withLock({ $0 }), held.until > .now { return held.token }
        let key = "token:google:\(credentials.email):\(credentials.keyID ?? "-"):\(scope)"
        return try await call.read(key) { try await self.fetch() }
    }

    func refuse(_ token: String) {
        held.withLock { held in
            if held?.token == token { held = nil }
        }
    }

    private func fetch() async throws -> String {
        let now = Int64(Date().timeIntervalSince1970)
        var header = [("alg", "\"RS256\""), ("typ", "\"JWT\"")]
        if let id = credentials.keyID { header.append(("kid", JSONText.quoted(id))) }
        let assertion = credentials.key.token(
            header: JSONText.object(header),
            payload: JSONText.object([
                ("iss", JSONText.quoted(credentials.email)), ("scope", JSONText.quoted(scope)),
                ("aud", JSONText.quoted(credentials.tokenURL)), ("iat", "\(now)"), ("exp", "\(now + 3600)"),
            ]))
        var request = HTTPRequest(
            "POST", credentials.tokenURL,
            body: .bytes(
                Array("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)".utf8)))
        request.headers.add("Content-Type", "application/x-www-form-urlencoded")
        request.isRepeatable = true
        request.limits.total = .seconds(15)
        let response: HTTPResponse
        do throws(TransferError) {
            response = try await client.send(request)
        } catch {
            throw Fault(transfer: error)
        }
        struct Grant: Decodable {
            var access_token: String
            var expires_in: Double?
        }
        guard response.status == 200, let grant = try? JSONDecoder().decode(Grant.self, from: Data(response.body)),
            !grant.access_token.isEmpty, grant.access_token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f })
        else {
            let kind: ErrorClass =
                (400...403).contains(response.status)
                ? .authentication : ErrorClass(http: response.status) ?? .transient
            throw Fault(kind, code: "\(response.status)", "Google gives no token for these credentials")
        }
        let life = max(30, (grant.expires_in ?? 3600) - 300)
        held.withLock { $0 = Held(token: grant.access_token, until: .now + .seconds(life)) }
        return grant.access_token
    }
}
