import JSON
import Listeners
import Signatures

/// What the database is told of a checked token: its own claims without `device`, and with `tenant` where another claim names it. Pure.
struct GatewayClaims: Sendable {
    /// Dots lead inside.
    let tenantClaim: String

    /// As `millrace.subject` has it.
    private static let longestName = 128

    func caller(of token: WebToken) throws(ErrorAnswer) -> GatewayCaller {
        guard case .object(var members) = token.claims, let subject = token.claims["sub"]?.text, !subject.isEmpty else {
            throw GatewayAccess.refusal(
                "the token is refused: it names no person", hint: "Sign in: the token needs the claim sub.")
        }
        guard Self.isName(subject) else {
            throw GatewayAccess.refusal(
                "the token is refused: its sub has more than \(Self.longestName) characters, or control characters")
        }
        // In the database this claim says that a device's token was shown, which no issuer may say.
        members.removeAll { $0.key == "device" }
        let tenant = try tenant(in: token.claims)
        if tenantClaim != "tenant" {
            members.removeAll { $0.key == "tenant" }
            if let tenant { members.append(JSONValue.Member(key: "tenant", value: .string(tenant))) }
        }
        return GatewayCaller(
            subject: subject, claims: Array(JSONValue.object(members).compact.utf8), expires: token.expires)
    }

    private func tenant(in claims: JSONValue) throws(ErrorAnswer) -> String? {
        // An issuer's name for a claim may have dots itself, such as https://example.com/tenant.
        var value = claims[tenantClaim]
        if value == nil {
            value = claims
            for part in tenantClaim.split(separator: ".") { value = value?[String(part)] }
        }
        switch value {
        case nil, .null?, .string("")?: return nil
        case .string(let name)? where Self.isName(name): return name
        default:
            throw GatewayAccess.refusal(
                "the token is refused: its claim \(tenantClaim) is not a text of at most \(Self.longestName) characters"
            )
        }
    }

    static func isName(_ text: String) -> Bool {
        text.unicodeScalars.count <= longestName
            && text.unicodeScalars.allSatisfy { $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value) }
    }
}
