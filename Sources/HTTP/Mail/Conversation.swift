/// What server and client have said to each other, line by line. Pure.
///
/// libcurl tells neither which recipient it is that was refused nor how far it came; both follow from who said what when.
struct Conversation: Sendable {
    private enum Asked: Equatable {
        /// The greeting, EHLO, STARTTLS, AUTH and its continuations.
        case session
        case sender
        case recipient(Int)
        /// DATA itself; what comes after its 354 answers the dot.
        case data
        case end
        /// RSET, QUIT, NOOP.
        case aside
    }

    private var asked = Asked.session
    private(set) var recipients: [MailReply?]
    private(set) var reply: MailReply?
    private(set) var ending: MailReply?
    private(set) var stage = MailResult.Stage.session
    private var next = 0
    private var lines: [String] = []

    init(recipients: Int) {
        self.recipients = Array(repeating: nil, count: recipients)
    }

    /// A command goes out. Only its verb is looked at: the rest of an AUTH is secret.
    mutating func send(_ bytes: some Sequence<UInt8>) {
        let verb = String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self).uppercased()
        lines = []
        switch verb {
        case "MAIL": (asked, stage) = (.sender, .sender)
        case "RCPT":
            (asked, stage) = (.recipient(next), .recipients)
            next += 1
        case "DATA": (asked, stage) = (.data, .data)
        case "RSET", "QUIT", "NOOP": asked = .aside
        default: if stage == .session { asked = .session }
        }
    }

    /// A line of a reply comes in.
    mutating func receive(_ bytes: some Collection<UInt8>) {
        let digits = bytes.prefix(3)
        guard digits.count == 3, let code = Int(String(decoding: digits, as: UTF8.self)), code >= 100 else { return }
        let rest = bytes.dropFirst(3)
        lines.append(Self.clean(rest.dropFirst()))
        guard rest.first != UInt8(ascii: "-") else { return }
        let text = lines.joined(separator: " ")
        lines = []
        guard asked != .aside else { return }
        let said = MailReply(code: code, text: String(decoding: text.utf8.prefix(500), as: UTF8.self))
        reply = said
        switch asked {
        case .recipient(let index) where index < recipients.count: recipients[index] = said
        case .data where code == 354: asked = .end
        case .data: ending = said
        case .end:
            ending = said
            if said.isAccepted { stage = .accepted }
        case .session, .sender, .recipient, .aside: break
        }
    }

    /// Printable, on one line.
    private static func clean(_ bytes: some Sequence<UInt8>) -> String {
        var text = String(decoding: bytes.filter { $0 >= 0x20 && $0 != 0x7f }, as: UTF8.self)
        while text.hasSuffix(" ") { text.removeLast() }
        return text
    }

    /// The server has said what becomes of the message: a refusal, or its yes to the dot.
    var isDecided: Bool {
        switch stage {
        case .accepted: true
        case .data: ending != nil
        case .recipients: !recipients.isEmpty && recipients.allSatisfy { $0.map { !$0.isAccepted } ?? false }
        case .sender: reply.map { $0.code >= 400 } ?? false
        case .session: false  // the server has not heard of a message yet
        }
    }

    var result: MailResult { MailResult(stage: stage, recipients: recipients, reply: reply) }
}
