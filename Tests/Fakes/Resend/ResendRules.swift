import FoundationEssentials

/// What Resend accepts, and its answers to everything else.
enum ResendRules {
    static func mails(
        _ body: ScannedJSON, isBatch: Bool, key: String, bytes: Int, now: Double
    ) -> Result<[AcceptedMail], Problem> {
        do throws(Problem) {
            guard isBatch else { return .success([try mail(body, index: 0, isBatch: false, key, bytes, now)]) }
            guard let list = body.list, !list.isEmpty else { throw missing("The batch is not an array of emails.") }
            guard list.count <= 100 else { throw Problem("invalid_parameter", "At most 100 emails a batch.") }
            var mails: [AcceptedMail] = []
            for (index, item) in list.enumerated() {
                mails.append(try mail(item, index: index, isBatch: true, key, bytes, now))
            }
            return .success(mails)
        } catch {
            return .failure(error)
        }
    }

    struct Problem: Error {
        var name: String
        var message: String
        init(_ name: String, _ message: String) { (self.name, self.message) = (name, message) }
    }

    private static func missing(_ what: String) -> Problem { Problem("missing_required_field", what) }

    private static func mail(
        _ json: ScannedJSON, index: Int, isBatch: Bool, _ key: String, _ bytes: Int, _ now: Double
    ) throws(Problem) -> AcceptedMail {
        guard json.isObject else { throw missing("An email is an object.") }
        guard let from = json["from"]?.text, isAddress(from) else {
            throw Problem("invalid_from_address", "Invalid `from` field.")
        }
        guard let to = json["to"]?.texts, !to.isEmpty else { throw missing("Missing `to` field.") }
        let (cc, bcc) = (json["cc"]?.texts ?? [], json["bcc"]?.texts ?? [])
        guard to.count <= 50, cc.count <= 50, bcc.count <= 50 else {
            throw Problem("invalid_parameter", "At most 50 recipients.")
        }
        for address in to + cc + bcc {
            guard isAddress(address) else { throw Problem("invalid_parameter", "Invalid recipient.") }
            let bare = bare(address)
            guard !bare.hasSuffix("@example.com"), !bare.hasSuffix("@test.com") else {
                throw Problem("invalid_parameter", "Testing addresses are refused.")
            }
        }
        guard let subject = json["subject"]?.text, !subject.isEmpty else { throw missing("Missing `subject` field.") }
        guard json["html"]?.text != nil || json["text"]?.text != nil else { throw missing("Missing `html` or `text`.") }
        var tags: [String: String] = [:]
        for tag in json["tags"]?.list ?? [] {
            guard let name = tag["name"]?.text, let value = tag["value"]?.text, isTag(name), isTag(value) else {
                throw Problem("invalid_parameter", "Tags hold ASCII letters, numbers, underscores and dashes.")
            }
            tags[name] = value
        }
        let attachments = json["attachments"]?.list ?? []
        guard !isBatch || (attachments.isEmpty && json["scheduled_at"] == nil) else {
            throw Problem("invalid_parameter", "No attachments and no scheduling in a batch.")
        }
        for file in attachments {
            guard let name = file["filename"]?.text, !name.isEmpty, let content = file["content"], content.text != nil,
                content.length % 4 == 0
            else { throw Problem("invalid_attachment", "An attachment needs a filename and its content in base64.") }
        }
        guard bytes <= 40 << 20 else { throw Problem("invalid_attachment", "At most 40 MB.") }
        return AcceptedMail(
            id: UUID().uuidString.lowercased(), key: key, index: index, from: from, to: to, cc: cc, bcc: bcc,
            subject: subject, tags: tags, attachments: attachments.count, bytes: bytes, at: now, lastEvent: "queued")
    }

    static func bare(_ address: String) -> Substring {
        guard address.hasSuffix(">"), let open = address.lastIndex(of: "<") else { return address[...] }
        return address[address.index(after: open)...].dropLast()
    }

    private static func isAddress(_ text: String) -> Bool {
        let parts = bare(text).split(separator: "@", omittingEmptySubsequences: false)
        return parts.count == 2 && !parts[0].isEmpty && parts[1].contains(".")
            && !text.unicodeScalars.contains { $0.value < 0x20 } && parts[0].utf8.allSatisfy { $0 < 0x80 }
    }

    private static func isTag(_ text: String) -> Bool {
        (1...256).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "_")
                    || byte == UInt8(ascii: "-")
                    || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
            }
    }
}
