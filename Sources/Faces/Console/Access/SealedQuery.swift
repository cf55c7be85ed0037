import Encryption
import FoundationEssentials
import JSON
import Signatures
import Templates

/// What somebody searches for and no log of a proxy may have, such as a person's address: encrypted, so that the page of the results has an address
/// to go back to. It is read only for the visitor who searched, on every console with the same key, and for as long as a session lasts.
struct SealedQuery: Sendable {
    private let key: [UInt8]

    /// - Parameter key: the console's own.
    init(key: [UInt8]) {
        self.key = HMAC.sha256(Array("millrace console search 1".utf8), key: key)
    }

    func seal(_ words: [String: String], for visitor: Visitor, at now: Date = Date()) -> String {
        let until = "\(Int(now.timeIntervalSince1970) + SessionCookie.lasts)"
        let nonce = (0..<AES.nonceSize).map { _ in UInt8.random(in: .min ... .max) }
        let plain = Array(JSONLine.object(words.merging(["until": until]) { $1 }).utf8)
        return Base64URL.encode(nonce + AES.seal(plain, key: key, nonce: nonce, bound: Array(visitor.name.utf8)))
    }

    /// nil: it is not ours, was changed, is too old, or is another visitor's.
    func open(_ text: String, for visitor: Visitor, at now: Date = Date()) -> [String: String]? {
        guard text.utf8.count <= 8192, let bytes = Base64URL.decode(text), bytes.count > AES.nonceSize,
            let plain = AES.open(
                Array(bytes.dropFirst(AES.nonceSize)), key: key, nonce: Array(bytes.prefix(AES.nonceSize)),
                bound: Array(visitor.name.utf8)),
            var words = (try? TemplateValue(json: plain))?.members.compactMapValues(\.plainText),
            let until = words.removeValue(forKey: "until").flatMap(Int.init), Double(until) > now.timeIntervalSince1970
        else { return nil }
        return words
    }
}
