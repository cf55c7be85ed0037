import FoundationEssentials

extension ResendProvider {
    /// The tag that connects an event to its message even when the answer to the request was lost.
    package static let tag = "millrace_message"

    static func body(_ letters: [Letter]) -> MessageBytes {
        var wire = MessageBytes()
        if letters.count == 1 {
            write(letters[0], to: &wire)
            return wire
        }
        for (index, letter) in letters.enumerated() {
            wire.add(index == 0 ? "[" : ",")
            write(letter, to: &wire)
        }
        wire.add("]")
        return wire
    }

    private static func write(_ letter: Letter, to wire: inout MessageBytes) {
        var json = OrderedJSONWriter()
        json.raw("{\"from\":")
        json.string(text(letter.from))
        func list(_ name: String, _ boxes: [Mailbox]) {
            json.raw(",\"\(name)\":")
            json.strings(boxes.map(text))
        }
        list("to", letter.to)
        if !letter.cc.isEmpty { list("cc", letter.cc) }
        if !letter.bcc.isEmpty { list("bcc", letter.bcc) }
        if let replyTo = letter.replyTo { json.member("reply_to", text(replyTo)) }
        json.member("subject", letter.subject)
        if let html = letter.html { json.member("html", html) }
        // Without it Resend would make a text from the HTML, and so a message that nobody here has seen.
        json.member("text", letter.text ?? "")
        if !letter.headers.isEmpty {
            for (index, header) in letter.headers.enumerated() {
                json.raw(index == 0 ? ",\"headers\":{" : ",")
                json.string(header.name)
                json.raw(":")
                json.string(header.value)
            }
            json.raw("}")
        }
        for (index, tag) in (letter.tags + [.init(Self.tag, letter.id.uuidString.lowercased())]).enumerated() {
            json.raw(index == 0 ? ",\"tags\":[" : ",")
            json.raw("{\"name\":")
            json.string(tag.name)
            json.member("value", tag.value)
            json.raw("}")
        }
        json.raw("]")
        for (index, file) in letter.attachments.enumerated() {
            json.raw(index == 0 ? ",\"attachments\":[{\"filename\":" : ",{\"filename\":")
            json.string(file.filename)
            json.member("content_type", file.contentType)
            if let id = file.contentID { json.member("content_id", id) }
            json.raw(",\"content\":\"")
            wire.add(json.bytes)
            wire.add(file.blob, size: file.size, width: nil)
            json = OrderedJSONWriter()
            json.raw("\"}")
        }
        json.raw(letter.attachments.isEmpty ? "}" : "]}")
        wire.add(json.bytes)
    }

    /// `Name <address>`, the name in quotes where it needs them; it may hold any letters here.
    private static func text(_ box: Mailbox) -> String {
        guard let name = box.name else { return box.address }
        let isPlain = name.utf8.allSatisfy { isAtomByte($0) || $0 == 0x20 || $0 >= 0x80 }
        return "\(isPlain ? name : HeaderWriter.quoted(name)) <\(box.address)>"
    }
}
