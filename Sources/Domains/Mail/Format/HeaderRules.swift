/// Which headers a caller may add, and which values they may have.
package enum HeaderRules {
    package static let mostHeaders = 50

    package static func check(_ header: Letter.Header) throws(Complaint) {
        let name = header.name
        guard (1...76).contains(name.utf8.count),
            name.utf8.allSatisfy({ isLetterOrDigit($0) || $0 == UInt8(ascii: "-") })
        else { throw Complaint("a header's name", "may hold letters, digits and hyphens, 76 of them at most") }
        // The name is checked, so it can be shown from here on.
        let part = "the header \(name)"
        let folded = name.lowercased()
        guard !reserved.contains(folded), !prefixes.contains(where: folded.hasPrefix) else {
            throw Complaint(part, "is set by the message's own fields or by servers; leave it out")
        }
        try checkText(header.value, part, most: 2000)
        if ascii.contains(folded), !header.value.utf8.allSatisfy({ $0 < 0x80 }) {
            throw Complaint(part, "must be ASCII")
        }
    }

    /// For subjects and values: one line of text.
    package static func checkText(_ text: String, _ part: String, most: Int) throws(Complaint) {
        guard text.utf8.count <= most else { throw Complaint(part, "is longer than \(most) bytes") }
        for scalar in text.unicodeScalars {
            if scalar.properties.generalCategory == .control || scalar.value == 0x2028 || scalar.value == 0x2029 {
                throw Complaint(part, "holds a line break, a NUL or another control character")
            }
            if (0x202A...0x202E).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value) {
                throw Complaint(part, "holds a character that reverses text")
            }
        }
    }

    private static let reserved: Set<String> = [
        "from", "to", "cc", "bcc", "reply-to", "sender", "subject", "date", "message-id", "mime-version", "return-path",
        "received", "delivered-to", "envelope-to", "x-original-to", "dkim-signature", "domainkey-signature",
        "authentication-results", "received-spf", "idempotency-key", "x-millrace-bcc", "errors-to", "apparently-to",
        "return-receipt-to", "disposition-notification-to",
    ]
    private static let prefixes = ["content-", "resent-", "arc-", "resend-", "x-ses-", "x-mailgun-", "x-smtpapi"]
    /// Headers that programs read.
    private static let ascii: Set<String> = [
        "list-unsubscribe", "list-unsubscribe-post", "list-id", "in-reply-to", "references", "auto-submitted",
        "precedence", "feedback-id", "importance", "x-priority", "priority",
    ]
}
