import Faults

extension Letter {
    /// The limit of the strictest provider, after base64.
    package static let mostBytes = 40_000_000
    package static let mostRecipients = 50

    package var recipients: [Mailbox] { to + cc + bcc }

    /// Throws the first mistake that can be found without asking a provider.
    package func check() throws(Complaint) {
        do { try from.check() } catch { throw error.about("the sender: \(error.part)") }
        if let replyTo {
            do { try replyTo.check() } catch { throw error.about("the address for replies: \(error.part)") }
        }
        guard !recipients.isEmpty else { throw Complaint("the recipients", "are missing: name at least one") }
        for (boxes, most, part) in [(to, 50, "recipient"), (cc, 50, "copy"), (bcc, 50, "blind copy")] {
            guard boxes.count <= most else {
                throw Complaint("the list of each \(part)", "has more than \(most) addresses")
            }
            for (index, box) in boxes.enumerated() {
                do { try box.check() } catch { throw error.about("\(part) \(index + 1): \(error.part)") }
            }
        }
        guard !trim(subject[...]).isEmpty else { throw Complaint("the subject", "is empty") }
        try HeaderRules.checkText(subject, "the subject", most: 998)
        guard text != nil || html != nil else { throw Complaint("the body", "is missing: give text, HTML or both") }
        guard !(text ?? "").utf8.contains(0), !(html ?? "").utf8.contains(0) else {
            throw Complaint("the body", "holds a NUL")
        }
        try checkHeaders()
        try checkTags()
        try checkAttachments()
    }

    private func checkHeaders() throws(Complaint) {
        guard headers.count <= HeaderRules.mostHeaders else {
            throw Complaint("the headers", "are more than \(HeaderRules.mostHeaders)")
        }
        var seen: Set<String> = []
        for header in headers {
            try HeaderRules.check(header)
            guard seen.insert(header.name.lowercased()).inserted else {
                throw Complaint("the header \(header.name)", "is there twice")
            }
        }
    }

    private func checkTags() throws(Complaint) {
        guard tags.count <= 20 else { throw Complaint("the tags", "are more than 20") }
        for tag in tags {
            for text in [tag.name, tag.value] {
                let isFit = text.utf8.allSatisfy {
                    isLetterOrDigit($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
                }
                guard isFit, (1...256).contains(text.utf8.count) else {
                    throw Complaint("a tag", "may hold letters, digits, _ and -, 256 of them at most in name and value")
                }
            }
        }
    }

    private func checkAttachments() throws(Complaint) {
        var ids: Set<String> = []
        for (index, attachment) in attachments.enumerated() {
            do { try attachment.check() } catch { throw error.about("attachment \(index + 1): \(error.part)") }
            if let id = attachment.contentID, !ids.insert(id).inserted {
                throw Complaint("attachment \(index + 1)", "has the content id of another")
            }
        }
        guard attachments.reduce(0, { $0 + Base64.length(of: $1.size, width: 76) }) <= Self.mostBytes,
            Message.wire(self).length <= Self.mostBytes
        else {
            throw Complaint(
                "the message", "is larger than 40 MB once it is encoded; send links to large files", kind: .tooLarge
            )
        }
    }
}
