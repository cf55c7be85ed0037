import Encodings
package import FoundationEssentials

/// The header `Stripe-Signature` of Stripe's webhooks: a time, and an HMAC of time and body for each secret in use.
package enum StripeSignature {
    /// The signing secret of an endpoint, `whsec_…`. It never prints.
    package struct Secret: Sendable, CustomStringConvertible, CustomReflectable {
        let key: [UInt8]

        /// Stripe signs with the bytes of the text itself.
        package init?(_ text: some StringProtocol) {
            guard text.hasPrefix("whsec_"), (20...512).contains(text.utf8.count),
                text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f })
            else { return nil }
            key = Array(text.utf8)
        }

        /// Several, one of which is going out of use: separated by spaces or by `|`.
        package static func list(_ text: String) -> [Secret]? {
            let parts = text.split { $0 == "|" || $0 == " " }
            let secrets = parts.compactMap { Secret($0) }
            return secrets.count == parts.count && !secrets.isEmpty ? secrets : nil
        }

        package var description: String { "a secret" }
        package var customMirror: Mirror { Mirror(self, children: []) }
    }

    package enum Refusal: String, Error, Sendable {
        case malformed = "the signature's header is missing or malformed"
        case tooOld = "the signature is more than five minutes old"
        case tooNew = "the signature is more than five minutes ahead"
        case noMatch = "no signature matches"
    }

    package static let tolerance = 300.0

    /// - Parameter header: `t=1492774577,v1=5257a8…,v1=…`; other schemes in it are passed over.
    package static func verify(
        _ body: [UInt8], header: String?, with secrets: [Secret], at now: Date
    ) throws(Refusal) {
        guard let header, header.utf8.count <= 4096 else { throw .malformed }
        var time: Substring?
        var given: [[UInt8]] = []
        for part in header.split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2 else { throw .malformed }
            switch pair[0].trimmed {
            case "t":
                guard time == nil else { throw .malformed }
                time = pair[1]
            case "v1":
                if given.count < 16, let bytes = Hexadecimal.bytes(pair[1].trimmed), bytes.count == 32 {
                    given.append(bytes)
                }
            default: break
            }
        }
        guard let time, time.utf8.count <= 12, time.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let seconds = Double(time), !given.isEmpty
        else { throw .malformed }
        let age = now.timeIntervalSince1970 - seconds
        guard age <= tolerance else { throw .tooOld }
        guard age >= -tolerance else { throw .tooNew }
        let content = Array("\(time).".utf8) + body
        var matches = false
        for secret in secrets {
            let expected = HMAC.sha256(content, key: secret.key)
            for one in given where HMAC.areEqual(expected, one) { matches = true }
        }
        guard matches else { throw .noMatch }
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        var rest = drop { $0 == " " }
        while rest.last == " " { rest = rest.dropLast() }
        return rest
    }
}
