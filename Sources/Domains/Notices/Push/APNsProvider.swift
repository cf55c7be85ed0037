import Faults
import FoundationEssentials
import JSON
package import Postgres
package import Signatures
package import Supervision
package import Transfers

/// Apple's push service, over HTTP/2.
package struct APNsProvider: NoticeProvider {
    package struct Configuration: Sendable {
        package var key: SigningKey
        /// The key file's contents, from which the key that encrypts the shared token is derived.
        package var keyBytes: [UInt8]
        package var keyID: String
        package var team: String
        /// The app's bundle identifier, for devices that do not say their own.
        package var topic: String
        /// nil: Apple's own address, by the device's platform.
        package var base: String?
        package var timeout = Duration.seconds(15)
        /// Whether alarms may break through silence, which Apple allows few apps.
        package var isCritical = false
        package var ages = SharedToken.Ages()

        package init(key: SigningKey, keyBytes: [UInt8], keyID: String, team: String, topic: String) {
            self.key = key
            self.keyBytes = keyBytes
            self.keyID = keyID
            self.team = team
            self.topic = topic
        }
    }

    package let name = "apns"
    private let configuration: Configuration
    private let client: HTTPClient
    private let token: any TokenSource

    package init(_ configuration: Configuration, client: HTTPClient, tokens: any TokenSource) {
        self.configuration = configuration
        self.client = client
        token = tokens
    }

    package init(_ configuration: Configuration, client: HTTPClient, pool: Pool) throws {
        let tokens = try SharedToken(
            name: "apns:\(configuration.team):\(configuration.keyID)", pool: pool, secret: configuration.keyBytes,
            ages: configuration.ages
        ) { at in configuration.token(at: at) }
        self.init(configuration, client: client, tokens: tokens)
    }

    package func send(_ sending: Sending, _ words: NoticeWords, call: Call) async -> NoticeOutcome {
        let token: String
        do {
            token = try await self.token.current(for: call)
        } catch {
            return .failed((error as? Fault) ?? Fault(.unavailable, "there is no token for APNs: \(error)"))
        }
        let request = request(for: sending, words, token: token)
        do throws(TransferError) {
            let response = try await client.send(request)
            let delivery = Self.judge(response, isAlarm: sending.isAlarm)
            // The next try uses a new token, unless this one is too young to be refused for its age.
            if delivery.fault?.code?.hasSuffix("ExpiredProviderToken") == true { self.token.refuse(token) }
            return delivery
        } catch {
            return .broken(error)
        }
    }

    package func request(for sending: Sending, _ words: NoticeWords, token: String) -> HTTPRequest {
        let base =
            configuration.base
            ?? (sending.platform == "apns_sandbox"
                ? "https://api.sandbox.push.apple.com" : "https://api.push.apple.com")
        let body = APNsPayload(sending, words, isCritical: configuration.isCritical).bytes
        var request = HTTPRequest("POST", "\(base)/3/device/\(sending.address)", body: .bytes(body))
        request.headers.add("authorization", "bearer \(token)")
        request.headers.add("apns-push-type", "alert")
        request.headers.add("apns-topic", sending.app ?? configuration.topic)
        request.headers.add("apns-priority", "10")
        // The id is the same for each sending of the notice, so a device shows only the last one.
        request.headers.add("apns-id", sending.id)
        request.headers.add("apns-collapse-id", sending.replaces)
        request.headers.add("apns-expiration", "\(Int64(Self.expiry(of: sending).timeIntervalSince1970))")
        request.headers.add("content-type", "application/json")
        request.limits.total = configuration.timeout
        request.limits.bodyBytes = 64 << 10
        // A repeated request has the same id, so it shows no second notice.
        request.isRepeatable = true
        return request
    }

    /// How long Apple keeps a notice for a device that is off. An alarm is kept for a day.
    static func expiry(of sending: Sending) -> Date {
        sending.expiresAt ?? sending.takenAt.addingTimeInterval(sending.isAlarm ? 86_400 : 4 * 3600)
    }

    static func judge(_ response: HTTPResponse, isAlarm: Bool) -> NoticeOutcome {
        if response.status == 200 { return .accepted(id: response.headers["apns-id"]) }
        struct Problem: Decodable {
            var reason: String?
            var timestamp: Double?
        }
        let problem = try? JSONDecoder().decode(Problem.self, from: Data(response.body))
        let reason = problem?.reason.flatMap { $0.utf8.count <= 64 && $0.utf8.allSatisfy(isPlain) ? $0 : nil }
        let code = reason.map { "\(response.status) \($0)" } ?? "\(response.status)"
        let notes = RateNotes(headers: response.headers.pairs, now: Date().timeIntervalSince1970)
        switch (response.status, reason) {
        case (410, _), (404, _):
            return .gone(
                Fault(.notFound, code: code, "the device is gone, or the app was removed from it"),
                since: problem?.timestamp.map { Date(timeIntervalSince1970: $0 / 1000) })
        case (400, "BadDeviceToken"?), (400, "DeviceTokenNotForTopic"?):
            return .refused(
                Fault(
                    .invalid, code: code, "this device is not one of this app and platform: check apns or apns_sandbox")
            )
        case (403, "ExpiredProviderToken"?):
            return .failed(Fault(.transient, code: code, "the token has expired; the next try has a new one"))
        case (403, _):
            return .failed(
                Fault(.authentication, code: code, "APNs does not accept the key: check its file, its id and the team"))
        case (429, "TooManyProviderTokenUpdates"?):
            return .failed(
                Fault(.throttled, code: code, "the token was renewed too often", wait: notes.retryAfter ?? .seconds(30))
            )
        case (429, _):
            // This limit is one device's; it says nothing about our pace.
            return .failed(
                Fault(
                    .transient, code: code, "too many notices for this device", wait: notes.retryAfter ?? .seconds(10)))
        case (413, _): return .refused(Fault(.tooLarge, code: code, "APNs takes 4096 bytes"))
        case (500..., _):
            let kind = ErrorClass(http: response.status, name: reason) ?? .transient
            return .failed(Fault(kind, code: code, "APNs failed for now", wait: notes.retryAfter))
        default:
            let kind = ErrorClass(http: response.status, name: reason) ?? .invalid
            return .said(Fault(kind, code: code, "APNs does not accept this"), isAlarm: isAlarm)
        }
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
}

extension APNsProvider.Configuration {
    /// The signed token that identifies us, dated with these seconds since 1970.
    package func token(at seconds: Int64) -> String {
        key.token(
            header: JSONText.object([("alg", "\"ES256\""), ("kid", JSONText.quoted(keyID))]),
            payload: JSONText.object([("iss", JSONText.quoted(team)), ("iat", "\(seconds)")]))
    }
}

extension APNsProvider.Configuration: CustomStringConvertible, CustomReflectable {
    package var description: String { "APNs" }
    package var customMirror: Swift.Mirror { Swift.Mirror(self, children: []) }
}
