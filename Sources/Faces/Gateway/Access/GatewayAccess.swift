package import FoundationEssentials
package import Listeners
package import Signatures
package import Supervision
import Synchronization
package import Telemetry

/// Decides who calls, by the web token or the device token of a request.
package final class GatewayAccess: Sendable {
    package struct Options: Sendable {
        /// A key set that an issuer publishes.
        package struct KeySet: Sendable, Equatable {
            package var url: String
            /// Its keys sign tokens of these alone.
            package var issuers: [String]

            package init(url: String, issuers: [String]) {
                self.url = url
                self.issuers = issuers
            }
        }

        /// For HS256; several while one goes out of use.
        package var secrets: [[UInt8]] = []
        package var publicKeys: [VerifyingKey] = []
        package var keySets: [KeySet] = []
        package var issuers: [String] = []
        package var audiences: [String] = []
        /// The claim that names the tenant; dots lead into nested values.
        package var tenantClaim = "tenant"
        package var leeway = 30.0
        package var now: @Sendable () -> Date = { Date() }

        package init() {}

        /// Without a key nobody can call.
        package var hasKeys: Bool { !secrets.isEmpty || !publicKeys.isEmpty || !keySets.isEmpty }
    }

    /// The bytes at a key set's address.
    package typealias Fetch = @Sendable (_ url: String) async throws -> [UInt8]
    /// The claims that the database keeps for a device token, as JSON; nil: it knows no such token, or the token has ended.
    package typealias DeviceClaims = @Sendable (_ token: String) async throws -> [UInt8]?

    private let options: Options
    private let keySets: [GatewayKeySet]
    private let devices: DeviceTokens
    private let supervisor: Supervisor
    /// Checking ES256 takes about 110 µs, RS256 60 µs and HS256 25 µs; finding a token here takes 2 µs.
    private let checked = Mutex(RecentCallers(capacity: 10_000))

    package init(
        _ options: Options, supervisor: Supervisor, log: Log, fetch: @escaping Fetch,
        deviceClaims: @escaping DeviceClaims
    ) {
        self.options = options
        self.supervisor = supervisor
        keySets = options.keySets.map {
            GatewayKeySet($0, supervisor: supervisor, log: log, now: options.now, fetch: fetch)
        }
        devices = DeviceTokens(supervisor: supervisor, now: options.now, claims: deviceClaims)
    }

    /// Who sends this request. Device tokens are taken too: the caller then has a `device`, and the routes decide what it may do.
    package func caller(of request: Request) async throws -> GatewayCaller {
        try await caller(authorization: request.headers.all("Authorization"))
    }

    package func caller(authorization values: [String]) async throws -> GatewayCaller {
        guard let value = values.first else {
            throw Self.refusal(
                "the request has no Authorization", hint: "Send Authorization: Bearer <token>.", names: nil)
        }
        guard values.count == 1 else { throw Self.refusal("the request has more than one Authorization") }
        let parts = value.split(separator: " ", maxSplits: 1)
        let token = parts.count == 2 ? String(parts[1].drop { $0 == " " }) : ""
        switch parts.first?.lowercased() {
        case "bearer" where !token.isEmpty: return try await caller(bearing: token)
        case "device" where !token.isEmpty: return try await devices.caller(of: token)
        default:
            throw Self.refusal(
                "Authorization names no scheme that is known here", hint: "Send Authorization: Bearer <token>.")
        }
    }

    /// A refusal that says which rule failed; never a part of the token.
    static func refusal(_ message: String, hint: String? = nil, names error: String? = "invalid_token") -> ErrorAnswer {
        ErrorAnswer(
            .authentication, message, field: "Authorization", hint: hint,
            headers: [Header("WWW-Authenticate", error.map { "Bearer error=\"\($0)\"" } ?? "Bearer")])
    }
}

extension GatewayAccess {
    private func caller(bearing token: String) async throws -> GatewayCaller {
        let now = options.now()
        let digest = RecentCallers.digest(token)
        let generation = generation
        let known = checked.withLock {
            $0.caller(of: digest, at: now, leeway: options.leeway, generation: generation)
        }
        if let known { return known }
        let caller = try GatewayClaims(tenantClaim: options.tenantClaim).caller(of: try await check(token))
        // Not when the keys have changed meanwhile.
        if generation == self.generation {
            checked.withLock { $0.keep(caller, of: digest, generation: generation) }
        }
        return caller
    }

    private func check(_ token: String) async throws -> WebToken {
        let before = knownKeys
        let refusal: WebTokenRules.Refusal
        do throws(WebTokenRules.Refusal) {
            return try rules(before).check(token, at: options.now())
        } catch {
            refusal = error
        }
        guard before.mayBeTooFew(for: refusal) else { throw Self.answer(to: refusal) }
        let named = WebToken.unchecked(token)
        let fitting = named.key == nil ? [] : keySets.filter { $0.signs(for: named.issuer) }
        if let id = named.key, refusal == .unknownKey {
            for set in fitting { set.met(id, in: RecentCallers.digest(token)) }
        }
        for set in keySets { await set.read(for: named.key) }
        let after = knownKeys
        do throws(WebTokenRules.Refusal) {
            return try rules(after).check(token, at: options.now())
        } catch {
            // Perhaps its key is among those that we cannot read, and the app must not sign its user out for that.
            if after.mayBeTooFew(for: error), let set = keySets.first(where: { $0.isFailing }) {
                throw ErrorAnswer(
                    .unavailable,
                    "the keys of \(set.host) cannot be read, and the token may be signed with one of them",
                    hint: "Try again soon.", headers: [Header("Retry-After", "5")])
            }
            // Its key may have been published since the last reading, as after an emergency.
            if error == .unknownKey, let id = named.key, let wait = fitting.compactMap({ $0.wait(for: id) }).min() {
                throw ErrorAnswer(
                    .unavailable, "the key that the token names is not known yet, and the keys were read just now",
                    hint: "Try again then.", headers: [Header("Retry-After", String(wait))])
            }
            throw Self.answer(to: error)
        }
    }

    private static func answer(to refusal: WebTokenRules.Refusal) -> ErrorAnswer {
        Self.refusal("the token is refused: \(refusal.rawValue)")
    }

    /// The published keys at one moment. Whether others may help is judged by those that a token was checked with: others may have come since.
    private struct KnownKeys {
        var keys: [WebTokenRules.Key]
        /// Of some key set nothing is known.
        var isIncomplete: Bool

        func mayBeTooFew(for refusal: WebTokenRules.Refusal) -> Bool {
            switch refusal {
            case .unknownKey: true
            case .algorithm, .signature: isIncomplete
            default: false
            }
        }
    }

    private var knownKeys: KnownKeys {
        let now = options.now()
        let sets = keySets.map { $0.keys(at: now) }
        return KnownKeys(keys: sets.flatMap(\.self), isIncomplete: sets.contains(where: \.isEmpty))
    }

    private func rules(_ known: KnownKeys) -> WebTokenRules {
        let issuers = options.issuers
        let fixed = options.secrets.map(WebTokenRules.Key.secret) + options.publicKeys.map { .public($0) }
        var rules = WebTokenRules(keys: fixed + known.keys, issuers: issuers, audiences: options.audiences)
        rules.types = ["jwt", "at+jwt", "application/at+jwt"]
        rules.leeway = options.leeway
        return rules
    }

    /// Grows with each change of the published keys: what was checked with a key that is gone is checked again.
    private var generation: Int { keySets.reduce(0) { $0 + $1.generation } }

    /// Keeps the published keys fresh until its task is cancelled.
    package func run() async {
        await withTaskGroup(of: Void.self) { group in
            for set in keySets { group.addTask { await set.run() } }
        }
    }

    /// What readiness says: key sets that could not be read for too long, a sentence each.
    package var troubles: [String] { keySets.compactMap { $0.trouble(at: options.now()) } }
}
