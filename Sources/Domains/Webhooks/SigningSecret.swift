package import Encryption
import FoundationEssentials
package import Signatures

/// A target's secrets as they are stored: a quoted text, or encrypted. An encrypted secret opens for its target only.
package enum SigningSecret {
    private static func kind(_ webhook: String) -> String { "webhook:\(webhook)" }

    /// In the form of Standard Webhooks: 32 bytes from the system's random generator.
    package static func make() -> String {
        var random = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        return "whsec_\(Data(bytes).base64EncodedString())"
    }

    package static func seal(_ secret: String, of webhook: String, with keys: Keyring) throws(SealError) -> [UInt8] {
        // A secret contains nothing that JSON would escape.
        try keys.seal(Array("\"\(secret)\"".utf8), kind: kind(webhook))
    }

    package static func open(_ stored: String, of webhook: String, with keys: Keyring) throws(SealError)
        -> Webhook.Secret
    {
        let text = try text(stored, of: webhook, with: keys)
        do throws(WebhookError) {
            return try Webhook.Secret(text)
        } catch {
            throw .malformed
        }
    }

    /// The stored secret, encrypted with the first key.
    static func reseal(_ stored: String, of webhook: String, with keys: Keyring) throws(SealError) -> [UInt8] {
        let plain = try keys.open(Array(stored.utf8), kind: kind(webhook))
        return try keys.seal(plain, kind: kind(webhook))
    }

    private static func text(_ stored: String, of webhook: String, with keys: Keyring) throws(SealError) -> Substring {
        let plain = String(decoding: try keys.open(Array(stored.utf8), kind: kind(webhook)), as: UTF8.self)
        guard plain.count > 2, plain.hasPrefix("\""), plain.hasSuffix("\"") else { throw .malformed }
        return plain.dropFirst().dropLast()
    }
}
