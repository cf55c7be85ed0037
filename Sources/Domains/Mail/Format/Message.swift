import FoundationEssentials

/// A letter in the form of RFC 5322 and MIME. The same letter always gives the same bytes, at any time and on any machine.
package enum Message {
    /// - Parameter showsBlindCopies: For a file that a developer looks at. A server would show them to all recipients.
    package static func wire(_ letter: Letter, showsBlindCopies: Bool = false) -> MessageBytes {
        var header = HeaderWriter()
        header.token("Date", MessageDate.text(letter.date))
        header.mailboxes("From", [letter.from])
        if let replyTo = letter.replyTo { header.mailboxes("Reply-To", [replyTo]) }
        if !letter.to.isEmpty { header.mailboxes("To", letter.to) }
        if !letter.cc.isEmpty { header.mailboxes("Cc", letter.cc) }
        if showsBlindCopies, !letter.bcc.isEmpty { header.mailboxes("Bcc", letter.bcc) }
        // Some servers refuse a message without a visible recipient.
        if letter.to.isEmpty, letter.cc.isEmpty { header.token("To", "undisclosed-recipients:;") }
        header.text("Subject", letter.subject)
        header.token("Message-ID", id(of: letter))
        for extra in letter.headers { header.text(extra.name, extra.value) }
        header.token("MIME-Version", "1.0")
        var wire = MessageBytes()
        wire.add(header.bytes)
        root(of: letter).write(to: &wire, path: "0", id: letter.id.uuidString.lowercased())
        return wire
    }

    /// The same for all attempts, so that a server or reader that gets the message twice can see that it is one.
    package static func id(of letter: Letter) -> String {
        "<\(letter.id.uuidString.lowercased())@\(letter.from.host)>"
    }

    private static func root(of letter: Letter) -> Part {
        let inline = letter.html == nil ? [] : letter.attachments.filter { $0.contentID != nil }
        let beside = letter.html == nil ? letter.attachments : letter.attachments.filter { $0.contentID == nil }
        var shown: [Part] = []
        if let text = letter.text { shown.append(.text(text, "plain")) }
        if let html = letter.html {
            let page = Part.text(html, "html")
            shown.append(inline.isEmpty ? page : .several("related", [page] + inline.map { .file($0, isInline: true) }))
        }
        var body: Part
        switch shown.count {
        case 0: body = .text("", "plain")
        case 1: body = shown[0]
        default: body = .several("alternative", shown)
        }
        if !beside.isEmpty { body = .several("mixed", [body] + beside.map { .file($0, isInline: false) }) }
        return body
    }

    private indirect enum Part {
        case text(String, String)
        case file(Letter.Attachment, isInline: Bool)
        case several(String, [Part])

        /// - Parameter path: The position of the part. No boundary of a message is a prefix of another, and none can occur in a text,
        ///   because "=" is escaped wherever a line begins like a boundary.
        func write(to wire: inout MessageBytes, path: String, id: String) {
            switch self {
            case .text(let text, let subtype):
                let bytes = TextEncoding.canonical(text)
                let encoding = TextEncoding.choose(for: bytes)
                var header = HeaderWriter()
                header.value("Content-Type", "text/\(subtype)", [("charset", "utf-8")])
                header.token("Content-Transfer-Encoding", encoding.rawValue)
                header.end()
                wire.add(header.bytes + encoding.encode(bytes))
            case .file(let file, let isInline):
                var header = HeaderWriter()
                header.token("Content-Type", file.contentType)
                header.value("Content-Disposition", isInline ? "inline" : "attachment", [("filename", file.filename)])
                if let id = file.contentID { header.token("Content-ID", "<\(id)>") }
                header.token("Content-Transfer-Encoding", "base64")
                header.end()
                wire.add(header.bytes)
                wire.add(file.blob, size: file.size, width: 76)
            case .several(let subtype, let parts):
                let boundary = "=_\(path)_\(id)"
                var header = HeaderWriter()
                var parameters = [("boundary", boundary)]
                if subtype == "related" { parameters.append(("type", "text/html")) }
                header.value("Content-Type", "multipart/\(subtype)", parameters)
                header.end()
                wire.add(header.bytes)
                for (index, part) in parts.enumerated() {
                    wire.add("\(index == 0 ? "" : "\r\n")--\(boundary)\r\n")
                    part.write(to: &wire, path: path + "." + String(index), id: id)
                }
                wire.add("\r\n--\(boundary)--\r\n")
            }
        }
    }
}
