package import FoundationEssentials

/// Standard Webhooks (Svix is the same with other names): signs what we send, and checks what we receive.
package enum Webhook {
    /// The signing secret. Secrets never print.
    package struct Secret: Sendable, CustomStringConvertible, CustomReflectable {
        let key: [UInt8]

        /// `whsec_<base64>`, also after a `v1,` as Supabase writes it; 24 to 64 bytes.
        package init(_ text: some StringProtocol) throws(WebhookError) {
            var rest = Substring(text)
            if rest.hasPrefix("v1,") { rest = rest.dropFirst(3) }
            guard rest.hasPrefix("whsec_") else { throw .badSecret }
            guard let data = Data(base64Encoded: String(rest.dropFirst(6))), (24...64).contains(data.count) else {
                throw .badSecret
            }
            key = Array(data)
        }

        /// Several, one of which is going out of use: separated by spaces or by `|`.
        package static func list(_ text: String) throws(WebhookError) -> [Secret] {
            var secrets: [Secret] = []
            for part in text.split(whereSeparator: { $0 == "|" || $0 == " " }) { secrets.append(try Secret(part)) }
            guard !secrets.isEmpty else { throw .badSecret }
            return secrets
        }

        package var description: String { "a secret" }
        package var customMirror: Mirror { Mirror(self, children: []) }
    }

    /// The three headers, with either of the two families of names.
    package struct Signed: Sendable {
        package var id: String?
        package var timestamp: String?
        package var signature: String?

        package init(id: String?, timestamp: String?, signature: String?) {
            self.id = id
            self.timestamp = timestamp
            self.signature = signature
        }

        /// - Parameter header: Returns the value of a header; upper and lower case do not matter.
        package init(_ header: (String) -> String?) {
            id = header("webhook-id") ?? header("svix-id")
            timestamp = header("webhook-timestamp") ?? header("svix-timestamp")
            signature = header("webhook-signature") ?? header("svix-signature")
        }
    }

    package static let tolerance = 300.0

    /// The value of the signature header: one signature for each secret.
    package static func sign(_ body: [UInt8], id: String, at timestamp: Int, with secrets: [Secret]) -> String {
        secrets.map { secret in
            "v1," + Data(HMAC.sha256(content(id, timestamp, body), key: secret.key)).base64EncodedString()
        }.joined(separator: " ")
    }

    /// The id, to be remembered: a delivery may come again with it.
    package static func verify(
        _ body: [UInt8], _ signed: Signed, with secrets: [Secret], at now: Date
    ) throws(WebhookError) -> String {
        guard let id = signed.id, let timestamp = signed.timestamp, let signature = signed.signature, !id.isEmpty,
            id.utf8.count <= 256, !signature.isEmpty
        else { throw .missingHeader }
        guard timestamp.utf8.count <= 12, timestamp.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let seconds = Int(timestamp)
        else { throw .badTimestamp }
        let age = now.timeIntervalSince1970 - Double(seconds)
        guard age <= tolerance else { throw .tooOld }
        guard age >= -tolerance else { throw .tooNew }
        let content = content(id, seconds, body, spelled: timestamp)
        let expected = secrets.map { HMAC.sha256(content, key: $0.key) }
        var matches = false
        // Separated by spaces; a sender that joins them with a comma and a space is understood too.
        for part in signature.utf8.split(separator: 0x20).prefix(32) {
            let version = part.prefix(3)
            guard version.elementsEqual("v1,".utf8) else { continue }
            var text = part.dropFirst(3)
            if text.last == UInt8(ascii: ",") { text = text.dropLast() }
            guard let given = Data(base64Encoded: String(decoding: text, as: UTF8.self)) else { continue }
            for one in expected where HMAC.areEqual(one, Array(given)) { matches = true }
        }
        guard matches else { throw .noMatch }
        return id
    }

    private static func content(_ id: String, _ timestamp: Int, _ body: [UInt8], spelled: String? = nil) -> [UInt8] {
        Array("\(id).\(spelled ?? String(timestamp)).".utf8) + body
    }
}

/// Why a delivery is not believed.
package enum WebhookError: Error, Sendable, Equatable, CustomStringConvertible {
    case badSecret
    case missingHeader
    case badTimestamp
    case tooOld
    case tooNew
    case noMatch

    package var description: String {
        switch self {
        case .badSecret: "the secret is not of the form whsec_<base64 of 24 to 64 bytes>"
        case .missingHeader: "the headers of the signature are missing or incomplete"
        case .badTimestamp: "the timestamp is not a number of seconds"
        case .tooOld: "the timestamp is more than five minutes old"
        case .tooNew: "the timestamp is more than five minutes ahead"
        case .noMatch: "no signature matches"
        }
    }
}
