import Encodings
import FoundationEssentials

/// What Supabase Auth asks us to send (its hook "send email").
struct SupabaseHook: Decodable, Sendable {
    struct User: Decodable, Sendable {
        var id: String?
        var email: String?
        /// The address that the user wants to have.
        var new_email: String?
        /// The same, as Supabase's guide spells it.
        var email_new: String?
    }

    struct Mail: Decodable, Sendable {
        var email_action_type: String
        var token: String?
        var token_hash: String?
        var token_hash_new: String?
        var redirect_to: String?
        var site_url: String?
    }

    /// One mail. Each kind has words of its own.
    struct Message: Sendable, Equatable {
        enum Kind: Sendable, Equatable {
            case recovery(token: String)
            case verification(token: String)
            /// By a built-in template of this name.
            case template(String)
        }

        var kind: Kind
        var recipient: String
        var data: [String: String]
    }

    var user: User
    var email_data: Mail

    init?(_ body: [UInt8]) {
        guard let hook = try? JSONDecoder().decode(SupabaseHook.self, from: Data(body)) else { return nil }
        self = hook
    }

    /// nil: it is of no kind that is known here, or lacks what its kind needs.
    var messages: [Message]? {
        let current = Self.given(user.email)
        let link = url(email_data.token_hash)
        switch email_data.email_action_type {
        case "recovery":
            guard let current, let hash = email_data.token_hash, let link else { return nil }
            return [Message(kind: .recovery(token: hash), recipient: current, data: ["url": link])]
        case "signup", "email":
            guard let current, let hash = email_data.token_hash, let link else { return nil }
            return [Message(kind: .verification(token: hash), recipient: current, data: ["url": link])]
        case "invite": return one("invite", to: current, ["url": link])
        case "magiclink": return one("magic_link", to: current, ["url": link], and: ["code": email_data.token])
        case "reauthentication": return one("reauthentication", to: current, ["code": email_data.token])
        case "email_change": return change(from: current)
        default: return nil
        }
    }

    /// With Supabase's secure change of addresses both have to be confirmed. The hash that is called new is then that of the current address.
    private func change(from current: String?) -> [Message]? {
        guard let wanted = Self.given(user.new_email) ?? Self.given(user.email_new) else { return nil }
        let hashes = [email_data.token_hash, email_data.token_hash_new].compactMap(Self.given)
        guard let hash = hashes.first else { return nil }
        let confirmation = one("email_change", to: wanted, ["url": url(hash), "email": wanted])
        guard hashes.count > 1, let current else { return confirmation }
        let consent = one("email_change", to: current, ["url": url(hashes[1]), "email": wanted])
        return consent.flatMap { consent in confirmation.map { consent + $0 } }
    }

    private func one(
        _ template: String, to recipient: String?, _ needed: [String: String?], and more: [String: String?] = [:]
    ) -> [Message]? {
        let given = needed.compactMapValues(Self.given)
        guard let recipient, given.count == needed.count else { return nil }
        let data = given.merging(more.compactMapValues(Self.given)) { first, _ in first }
        return [Message(kind: .template(template), recipient: recipient, data: data)]
    }

    /// Where Supabase takes this hash.
    private func url(_ hash: String?) -> String? {
        guard let hash = Self.given(hash), let site = Self.given(email_data.site_url) else { return nil }
        let base = site.hasSuffix("/") ? String(site.dropLast()) : site
        return "\(base)/verify?token=\(PercentEncoding.encoded(hash))"
            + "&type=\(PercentEncoding.encoded(email_data.email_action_type))"
            + "&redirect_to=\(PercentEncoding.encoded(email_data.redirect_to ?? ""))"
    }

    private static func given(_ text: String?) -> String? { text?.isEmpty == false ? text : nil }
}
