public import FoundationEssentials
import Mail

/// A message as a provider would have been given it: checked, rendered, and frozen.
public struct CapturedMail: Sendable, Identifiable {
    /// A file that goes along.
    public struct Attachment: Sendable {
        /// As the recipient sees it.
        public let filename: String
        /// Such as application/pdf.
        public let contentType: String
        /// Its content.
        public let bytes: [UInt8]
    }

    /// The message's id, as `mail_send` returned it.
    public let id: UUID
    /// The address it comes from.
    public let from: String
    /// The addresses it goes to, without names; those of copies apart.
    public let to: [String]
    /// The recipients of a copy.
    public let cc: [String]
    /// The recipients of a hidden copy.
    public let bcc: [String]
    /// One line.
    public let subject: String
    /// The plain part.
    public let text: String?
    /// The HTML part.
    public let html: String?
    /// Those beyond what every message has, names as they were given.
    public let headers: [String: String]
    /// Labels for the provider and for us.
    public let tags: [String: String]
    /// In their order.
    public let attachments: [Attachment]

    init(_ letter: Letter, attachments: [Attachment]) {
        id = letter.id
        from = letter.from.address
        to = letter.to.map(\.address)
        cc = letter.cc.map(\.address)
        bcc = letter.bcc.map(\.address)
        subject = letter.subject
        text = letter.text
        html = letter.html
        headers = Dictionary(letter.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        tags = Dictionary(letter.tags.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        self.attachments = attachments
    }

    /// Every http and https address in the plain part, in its order: the links that a person would follow.
    public var links: [String] {
        (text ?? "").split(whereSeparator: \.isWhitespace).compactMap { word in
            // A bracket or a quote may precede the address.
            guard
                let start = word.indices.first(where: {
                    word[$0...].hasPrefix("https://") || word[$0...].hasPrefix("http://")
                })
            else { return nil }
            var link = word[start...]
            while let last = link.last, ".,;:!?)>]}\"'".contains(last) { link.removeLast() }
            return String(link)
        }
    }

    func isAddressed(to address: String) -> Bool {
        (to + cc + bcc).contains { $0.lowercased() == address.lowercased() }
    }
}
