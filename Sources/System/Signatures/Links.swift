import Encodings

/// Links that prove where they come from: to unsubscribe, without an address in them, and to answer an alarm or a question.
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
        guard let alarm = alarm == nil ? [UInt8](repeating: 0, count: 16) : alarm.flatMap(Self.uuid) else { return nil }
        return token(.alarm, alarm, contact)
    }

    /// nil for a token that none of our secrets signed.
    package func openedAlarm(_ token: String) -> (alarm: String?, contact: String)? {
        guard let (alarm, contact) = opened(.alarm, token) else { return nil }
        return (alarm.allSatisfy { $0 == 0 } ? nil : Hexadecimal.uuid(alarm), Hexadecimal.uuid(contact))
    }

    /// The link for a person who is asked: each has an own one, and the answer is theirs.
    ///
    /// - Parameter ref: what the database has given the person for this question.
    package func approval(_ approval: String, ref: String) -> String? {
        guard let approval = Self.uuid(approval), let token = token(.approval, approval, ref) else { return nil }
        return "\(publicURL)/v1/approvals/\(token)"
    }

    /// nil for a token that none of our secrets signed.
    package func openedApproval(_ token: String) -> (approval: String, ref: String)? {
        guard let (approval, ref) = opened(.approval, token) else { return nil }
        return (Hexadecimal.uuid(approval), Hexadecimal.uuid(ref))
    }

    /// What a link is for. It is signed too, so that no link opens another page.
    private enum Purpose: String {
        case alarm = "millrace alarm 1:"
        case approval = "millrace approval 1:"

        func mark(_ content: [UInt8], _ secret: [UInt8]) -> [UInt8] {
            HMAC.sha256(Array(rawValue.utf8) + content, key: secret)
        }
    }

    private func token(_ purpose: Purpose, _ object: [UInt8], _ reader: String) -> String? {
        guard !publicURL.isEmpty, let secret = secrets.first, let reader = Self.uuid(reader) else { return nil }
        let content = object + reader
        return Hexadecimal.text(content) + Hexadecimal.text(purpose.mark(content, secret))
    }

    private func opened(_ purpose: Purpose, _ token: String) -> (object: [UInt8], reader: [UInt8])? {
        guard let bytes = Self.bytes(token), bytes.count == 64 else { return nil }
        let content = Array(bytes[..<32])
        let given = Array(bytes[32...])
        guard secrets.contains(where: { HMAC.areEqual(purpose.mark(content, $0), given) }) else { return nil }
        return (Array(content[..<16]), Array(content[16...]))
    }

    private static func uuid(_ text: String) -> [UInt8]? {
        let found = bytes(text.filter { $0 != "-" })
        return found?.count == 16 ? found : nil
    }

    private static func bytes(_ hex: String) -> [UInt8]? {
        hex.utf8.count <= 256 ? Hexadecimal.bytes(hex) : nil
    }
}
