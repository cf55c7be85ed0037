import FoundationEssentials
package import SettingsKit
package import Signatures

extension Setting {
    /// Whose tokens the gateway takes.
    package static let gatewayTokens: [Setting] = [
        gatewaySecret, gatewaySecretPrevious, supabaseSecret, gatewayKeys, gatewayKeySets, gatewayIssuers,
        gatewayAudiences, gatewayTenantClaim, gatewayLeeway,
    ]

    package static let gatewaySecret = Setting(
        "gateway-jwt-secret", .custom(expects: "a secret of at least 32 bytes", complaint: shortSecret),
        secrecy: .hidden, valueName: "SECRET",
        help: "What signs the tokens of the apps' users (HS256); SUPABASE_JWT_SECRET if not given.")
    package static let gatewaySecretPrevious = Setting(
        "gateway-jwt-secret-previous", .custom(expects: "a secret of at least 32 bytes", complaint: shortSecret),
        secrecy: .hidden, valueName: "SECRET", help: "The previous secret; tokens that it signed are still accepted.")
    /// Other programs read it too, so its length is judged only where it is used.
    package static let supabaseSecret = Setting(
        "supabase-jwt-secret", environment: "SUPABASE_JWT_SECRET", .text, secrecy: .hidden, valueName: "SECRET",
        help: "The secret of Supabase's tokens (HS256).")
    package static let gatewayKeys = Setting(
        "gateway-jwt-keys",
        .custom(expects: "public keys in PEM form") { text in
            do throws(VerifyingKey.Unusable) {
                _ = try VerifyingKey.all(inPEM: text)
                return nil
            } catch {
                return "cannot be used: \(error)"
            }
        }, secrecy: .hidden, valueName: "PEM", hasLines: true,
        help: "Public keys of the apps' tokens (RS256, ES256 or EdDSA), one after the other; usually a file.")
    package static let gatewayKeySets = Setting(
        "gateway-jwks-urls",
        .custom(expects: "addresses that begin with https://") { text in
            ListText.items(text).allSatisfy(isKeySetAddress)
                ? nil : "takes addresses that begin with https://, separated by commas"
        }, valueName: "URLS", help: "Where the issuers publish their keys (JWKS), separated by commas.")
    package static let gatewayIssuers = Setting(
        "gateway-jwt-issuers", .text, valueName: "ISSUERS",
        help: "Who may have issued a token (iss), separated by commas; of several JWKS, in the same order.")
    package static let gatewayAudiences = Setting(
        "gateway-jwt-audiences", .text, valueName: "AUDIENCES",
        help: "The audiences of which a token must have one (aud), separated by commas; any if not given.")
    package static let gatewayTenantClaim = Setting(
        "gateway-tenant-claim",
        .custom(expects: "the name of a claim") { text in
            if !(1...128).contains(text.utf8.count) { return "takes the name of a claim, of 1 to 128 bytes" }
            // Everybody who is signed in may write there.
            return text == "user_metadata" || text.hasPrefix("user_metadata.")
                ? "must not be a claim that users write themselves; take app_metadata.tenant" : nil
        }, fallback: "tenant", valueName: "CLAIM",
        help: "The claim that names the tenant; dots lead into nested values, as in app_metadata.tenant.")
    package static let gatewayLeeway = Setting(
        "gateway-jwt-leeway", .duration(.zero ... .seconds(300)), fallback: "30s", valueName: "DURATION",
        help: "How far the issuers' clocks may be from ours.")

    private static func shortSecret(_ text: String) -> String? {
        text.utf8.count >= leastSecret ? nil : "takes at least \(leastSecret) bytes"
    }

    /// As long as what HS256 makes (RFC 7518, 3.2).
    package static let leastSecret = 32

    /// Over the network only with TLS: who can change the keys on their way can be anybody.
    private static func isKeySetAddress(_ text: String) -> Bool {
        guard text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }), !text.contains("@") else { return false }
        if text.hasPrefix("https://") { return text.utf8.count > 8 }
        guard text.hasPrefix("http://") else { return false }
        let place = text.dropFirst(7).prefix { $0 != "/" && $0 != "?" }
        let host = place.hasPrefix("[") ? place.prefix { $0 != "]" } + "]" : place.prefix { $0 != ":" }
        return ["127.0.0.1", "localhost", "[::1]"].contains(host)
    }
}

extension VerifyingKey {
    /// All keys of a text, at least one.
    package static func all(inPEM text: String) throws(Unusable) -> [VerifyingKey] {
        let end = "-----END PUBLIC KEY-----"
        var keys: [VerifyingKey] = []
        var rest = text[...]
        while let last = rest.firstRange(of: end) {
            keys.append(try VerifyingKey(pem: Array(rest[..<last.upperBound].utf8)))
            rest = rest[last.upperBound...]
        }
        if keys.isEmpty || rest.contains(where: { !$0.isWhitespace }) {
            keys.append(try VerifyingKey(pem: Array(rest.utf8)))
        }
        return keys
    }
}

extension Settings {
    /// Somebody has said whose tokens are taken.
    package var knowsTokens: Bool {
        let keys = [Setting.gatewaySecret, .gatewayKeys, .gatewayKeySets]
        return keys.contains { text($0) != nil } || isOn(.gatewayOn)
    }

    /// The key sets, issuers and audiences as they were configured.
    package func gatewayTokens() throws(Failure) -> GatewayAccess.Options {
        var options = GatewayAccess.Options()
        options.secrets = try gatewaySecrets()
        if let pem = text(.gatewayKeys) { options.publicKeys = (try? VerifyingKey.all(inPEM: pem)) ?? [] }
        options.issuers = text(.gatewayIssuers).map(ListText.items) ?? []
        options.audiences = text(.gatewayAudiences).map(ListText.items) ?? []
        options.tenantClaim = string(.gatewayTenantClaim)
        options.leeway = duration(.gatewayLeeway) / .seconds(1)
        let urls = text(.gatewayKeySets).map(ListText.items) ?? []
        guard urls.isEmpty || !options.issuers.isEmpty else {
            throw Failure(
                .misused, "MILLRACE_GATEWAY_JWKS_URLS is set, but not whose tokens are accepted",
                hint: "set MILLRACE_GATEWAY_JWT_ISSUERS to the iss of the tokens: some key sets sign for many apps")
        }
        guard urls.count < 2 || urls.count == options.issuers.count else {
            throw Failure(
                .misused, "there are \(urls.count) key sets and \(options.issuers.count) issuers",
                hint: "with several JWKS give the issuer of each, in the same order, in MILLRACE_GATEWAY_JWT_ISSUERS")
        }
        options.keySets = urls.enumerated().map { index, url in
            GatewayAccess.Options.KeySet(
                url: url, issuers: urls.count == 1 ? options.issuers : [options.issuers[index]])
        }
        guard options.hasKeys else {
            throw Failure(
                .misused, "the gateway has no key to check tokens with, so nobody could call",
                hint:
                    "set MILLRACE_GATEWAY_JWKS_URLS, MILLRACE_GATEWAY_JWT_KEYS_FILE or MILLRACE_GATEWAY_JWT_SECRET_FILE"
            )
        }
        return options
    }

    private func gatewaySecrets() throws(Failure) -> [[UInt8]] {
        let secrets = [text(.gatewaySecret) ?? text(.supabaseSecret), text(.gatewaySecretPrevious)].compactMap(\.self)
        guard secrets.allSatisfy({ $0.utf8.count >= Setting.leastSecret }) else {
            throw Failure(
                .misused,
                "SUPABASE_JWT_SECRET has fewer than \(Setting.leastSecret) bytes: such a secret can be guessed",
                hint: "make a longer one, or let Supabase sign with a key and set MILLRACE_GATEWAY_JWKS_URLS")
        }
        return secrets.map { Array($0.utf8) }
    }
}
