import Composition
import Faults
import FoundationEssentials
import Gateway
import Postgres
import Signatures
import Supervision
import Transfers

/// Checks what the gateway needs, where it is configured.
extension Doctor {
    /// What an issuer's address answered.
    struct KeySetLook: Sendable {
        var host: String
        var usable = 0
        /// A sentence for each key that is not used.
        var unused: [String] = []
        var failure: String?
        /// Seconds that the issuer's clock is ahead of ours.
        var ahead: Double?
    }

    func gateway() async -> [Check] {
        let settings = invocation.settings
        guard settings.knowsTokens else { return [] }
        let options: GatewayAccess.Options
        do throws(Failure) {
            options = try settings.gatewayTokens()
        } catch {
            let advice = error.hint ?? "see deploy/guides/gateway.md"
            return [Check(subject: .gatewayKeys, result: .problem(error.sentence, advice: advice))]
        }
        let client = HTTPClient()
        defer { client.close() }
        var looks: [KeySetLook] = []
        for set in options.keySets { looks.append(await Self.look(at: set.url, client)) }
        var checks = [
            Check(
                subject: .gatewayKeys,
                result: Self.judge(looks, fixed: options.secrets.count + options.publicKeys.count))
        ]
        if let clock = Self.judgeClock(looks, leeway: options.leeway) {
            checks.append(Check(subject: .gatewayClock, result: clock))
        }
        let role = settings.clientRole
        checks.append(
            await look(.gatewayRole) { () throws(PostgresError) in
                Self.judge(try await GatewayRights.look(for: role, on: connection), role: role)
            })
        return checks
    }

    private static func look(at url: String, _ client: HTTPClient) async -> KeySetLook {
        let rest = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        var look = KeySetLook(host: String(rest.prefix { $0 != "/" && $0 != "?" }))
        let before = Date()
        do {
            let response = try await Composer.keySet(at: url, client)
            let middle = before.addingTimeInterval(Date().timeIntervalSince(before) / 2)
            look.ahead = ahead(date: response.headers["Date"], age: response.headers["Age"], of: middle)
            let set = try WebKeySet(response.body)
            look.usable = set.keys.count
            look.unused = set.unused
        } catch {
            look.failure = (error as? Fault)?.what ?? "\(error)"
        }
        return look
    }

    /// A cache gives the date at which it got the answer, and says how long ago that was.
    static func ahead(date: String?, age: String?, of ours: Date) -> Double? {
        guard let seconds = date.flatMap(HTTPDate.seconds) else { return nil }
        return seconds + (age.flatMap(Double.init) ?? 0) - ours.timeIntervalSince1970
    }

    static func judge(_ looks: [KeySetLook], fixed: Int) -> Check.Result {
        if let bad = looks.first(where: { $0.failure != nil }) {
            return .problem(
                "the keys of \(bad.host) cannot be read: \(bad.failure ?? "")",
                advice: "look at MILLRACE_GATEWAY_JWKS_URLS, and at the way from here to there")
        }
        if let empty = looks.first(where: { $0.usable == 0 }) {
            return .problem(
                "\(empty.host) publishes no usable key: \(empty.unused.first ?? "its list is empty")",
                advice: "let the issuer sign with RS256, ES256 or EdDSA")
        }
        var parts = looks.map { look in
            "\(Humane.count(look.usable, "key")) of \(look.host)"
                + (look.unused.isEmpty ? "" : " (and \(look.unused.count) not used: \(look.unused[0]))")
        }
        if fixed > 0 { parts.append("\(fixed) of the settings") }
        return .ok(parts.joined(separator: ", "))
    }

    /// From here on it is more than an answer's way, and a date's whole seconds, explain.
    private static let farAhead = 20.0

    static func judgeClock(_ looks: [KeySetLook], leeway: Double) -> Check.Result? {
        let known = looks.compactMap { look in look.ahead.map { (host: look.host, ahead: $0) } }
        guard let worst = known.max(by: { $0.ahead.magnitude < $1.ahead.magnitude }) else { return nil }
        let apart = Humane.duration(.seconds(worst.ahead.magnitude))
        guard worst.ahead.magnitude >= farAhead else { return .ok("\(apart) apart from \(worst.host)") }
        let says = worst.ahead > 0 ? "behind" : "ahead of"
        return .warning(
            "this machine's clock is \(apart) \(says) that of \(worst.host): tokens are taken with a leeway of \(Int(leeway)) s",
            advice: "let NTP set the clock here")
    }

    static func judge(_ rights: GatewayRights, role: String) -> Check.Result {
        switch rights {
        case .fine: .ok("this login may take on \(role)")
        case .missing: .problem("the role \(role) does not exist", advice: "run: millrace migrate --print-roles")
        case .forbidden:
            .warning(
                "this login may not take on \(role), so a gateway with it could call nothing",
                advice: "run doctor as the gateway's login; if this is it: grant \(role) to it")
        }
    }
}
