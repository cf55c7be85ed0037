import FoundationEssentials
package import Signatures
import Templates

/// Visitors whom a reverse proxy has signed in: it puts a web token into a header of each request.
package struct ProxyTokens: Sendable {
    package var rules: WebTokenRules
    /// The header that the proxy sets, and that it removes from what clients send.
    package var header = "Authorization"
    /// The claim with the role, or with a list of groups; dots lead into nested values.
    package var claim = "millrace_role"
    /// Which values of the claim give which role; without an entry the claim has to be the role itself.
    package var groups: [String: ConsoleRole] = [:]

    package init(rules: WebTokenRules) {
        self.rules = rules
    }

    enum Answer {
        case none
        case visitor(Visitor)
        case refused(String)
    }

    func answer(to headers: (String) -> [String], at now: Date) -> Answer {
        let given = headers(header)
        // The proxy sets one; the other would be the client's own.
        guard given.count < 2 else { return .refused("the header \(header) is there twice") }
        guard var text = given.first, !text.isEmpty else { return .none }
        if text.prefix(7).lowercased() == "bearer " { text = String(text.dropFirst(7)) }
        // An access token of ours, not a web token.
        guard text.contains(".") else { return .none }
        do {
            let payload = try rules.payload(of: text, at: now)
            guard let claims = try? TemplateValue(json: payload) else { return .refused("it is not a JSON document") }
            guard let role = role(in: claims) else {
                return .refused("its claim \(claim) gives no role here")
            }
            let name = claims["email"]?.plainText ?? claims["preferred_username"]?.plainText ?? claims["sub"]?.plainText
            return .visitor(Visitor(name: String((name ?? "somebody").prefix(100)), role: role))
        } catch {
            return .refused(error.rawValue)
        }
    }

    /// Of several groups the one that may do most.
    private func role(in claims: TemplateValue) -> ConsoleRole? {
        var value: TemplateValue? = claims
        for part in claim.split(separator: ".") { value = value?[String(part)] }
        let names: [String] =
            switch value {
            case .string(let name)?: [name]
            case .list(let list)?: list.compactMap(\.plainText)
            default: []
            }
        return names.compactMap { groups[$0] ?? (groups.isEmpty ? ConsoleRole(rawValue: $0) : nil) }.max()
    }
}
