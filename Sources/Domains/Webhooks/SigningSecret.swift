package import Encryption
import FoundationEssentials
package import Signatures

/// The secrets of a target as they are stored: a text in quotes, or what keys have made of it. They open for that target only.
package enum SigningSecret {
    private static func kind(_ webhook: String) -> String { "webhook:\(webhook)" }

    /// As Standard Webhooks writes it: 32 bytes of the system's own generator.
    package static func make() -> String {
        var random = SystemRandomNumberGenerator()
        let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        return "whsec_\(Data(bytes).base64EncodedString())"
    }

    package static func seal(_ secret: String, of webhook: String, with keys: Keyring) throws(SealError) -> [UInt8] {
        // A secret holds nothing that JSON would escape.
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

    /// What is stored, under the first key.
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
