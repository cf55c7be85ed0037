import Encodings

/// Links that prove where they come from: to unsubscribe, without an address in them, and to answer an alarm.
package struct Links: Sendable {
    /// Without a slash at its end.
    private let publicURL: String
    private let secrets: [[UInt8]]

    /// - Parameter secrets: the secrets that sign links, the newest first; links that older ones signed still open.
    package init(publicURL: String, secrets: [String]) {
        self.publicURL = publicURL.hasSuffix("/") ? String(publicURL.dropLast()) : publicURL
        self.secrets = secrets.map { Array($0.utf8) }
    }

    /// Clients post to it only by HTTPS.
    package var isUsable: Bool { publicURL.hasPrefix("https://") && !secrets.isEmpty }

    package func unsubscribe(_ hash: [UInt8]) -> String? {
        guard isUsable, let secret = secrets.first else { return nil }
        return "\(publicURL)/v1/unsubscribe/\(Hexadecimal.text(hash))\(Hexadecimal.text(Self.mark(hash, secret)))"
    }

    /// The hash in a link of ours; nil for anybody else's.
    package func opened(_ token: String) -> [UInt8]? {
        guard let bytes = Self.bytes(token), bytes.count == 64 else { return nil }
        let hash = Array(bytes[..<32])
        let given = Array(bytes[32...])
        return secrets.contains { HMAC.areEqual(Self.mark(hash, $0), given) } ? hash : nil
    }

    private static func mark(_ hash: [UInt8], _ secret: [UInt8]) -> [UInt8] {
        let text = Array("millrace unsubscribe 1:".utf8) + hash
        return HMAC.sha256(text, key: secret)
    }

    /// The link for a contact: to an alarm, or, without one, to the question whether it agrees to be a contact.
    ///
    /// - Parameter contact: the `ref` in a notice's data; `alarm` is there as well.
    package func alarm(_ alarm: String?, contact: String) -> String? {
        guard let token = alarmToken(alarm, contact: contact) else { return nil }
        return "\(publicURL)/v1/alarms/\(token)"
    }

    package func alarmToken(_ alarm: String?, contact: String) -> String? {
        guard !publicURL.isEmpty, let secret = secrets.first, let contact = Self.uuid(contact),
            let alarm = alarm == nil ? [UInt8](repeating: 0, count: 16) : alarm.flatMap(Self.uuid)
        else { return nil }
        let content = alarm + contact
        return Hexadecimal.text(content) + Hexadecimal.text(Self.alarmMark(content, secret))
    }

    /// nil for a token that none of our secrets signed.
    package func openedAlarm(_ token: String) -> (alarm: String?, contact: String)? {
        guard let bytes = Self.bytes(token), bytes.count == 64 else { return nil }
        let content = Array(bytes[..<32])
        let given = Array(bytes[32...])
        guard secrets.contains(where: { HMAC.areEqual(Self.alarmMark(content, $0), given) }) else { return nil }
        let alarm = Array(content[..<16])
        return (alarm.allSatisfy { $0 == 0 } ? nil : Hexadecimal.uuid(alarm), Hexadecimal.uuid(Array(content[16...])))
    }

    private static func alarmMark(_ content: [UInt8], _ secret: [UInt8]) -> [UInt8] {
        HMAC.sha256(Array("millrace alarm 1:".utf8) + content, key: secret)
    }

    private static func uuid(_ text: String) -> [UInt8]? {
        let found = bytes(text.filter { $0 != "-" })
        return found?.count == 16 ? found : nil
    }

    private static func bytes(_ hex: String) -> [UInt8]? {
        hex.utf8.count <= 256 ? Hexadecimal.bytes(hex) : nil
    }
}
