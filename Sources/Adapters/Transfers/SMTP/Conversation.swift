/// The conversation of server and client, line by line. Pure.
///
/// libcurl tells neither which recipient was refused nor how far it came; both follow from the order of the lines.
struct Conversation: Sendable {
    private enum Asked: Equatable {
        /// The greeting, EHLO, STARTTLS, AUTH and its continuations.
        case session
        case sender
        case recipient(Int)
        /// DATA itself; the reply after its 354 answers the final dot.
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

    /// A command is sent. Only its verb is kept: the rest of an AUTH is secret.
    mutating func send(_ bytes: some Sequence<UInt8>) {
        var verb: UInt64 = 0
        for byte in bytes.prefix(8) {
            guard byte > 0x20 else { break }
            verb = verb << 8 | UInt64(byte & 0xdf)  // in capitals
        }
        lines = []
        switch verb {
        case Self.mail: (asked, stage) = (.sender, .sender)
        case Self.rcpt:
            (asked, stage) = (.recipient(next), .recipients)
            next += 1
        case Self.data: (asked, stage) = (.data, .data)
        case Self.rset, Self.quit, Self.noop: asked = .aside
        default: if stage == .session { asked = .session }
        }
    }

    private static let (mail, rcpt, data) = (number("MAIL"), number("RCPT"), number("DATA"))
    private static let (rset, quit, noop) = (number("RSET"), number("QUIT"), number("NOOP"))
    private static func number(_ verb: String) -> UInt64 { verb.utf8.reduce(0) { $0 << 8 | UInt64($1) } }

    /// A line of a reply comes in.
    mutating func receive(_ bytes: some Collection<UInt8>) {
        let digits = bytes.prefix(3)
        guard digits.count == 3, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return }
        let code = digits.reduce(0) { $0 * 10 + Int($1 & 15) }
        guard code >= 100 else { return }
        let rest = bytes.dropFirst(3)
        lines.append(Self.clean(rest.dropFirst()))
        guard rest.first != UInt8(ascii: "-") else { return }
        let text = lines.count == 1 ? lines[0] : lines.joined(separator: " ")
        lines = []
        guard asked != .aside else { return }
        let said = MailReply(
            code: code, text: text.utf8.count <= 500 ? text : String(decoding: text.utf8.prefix(500), as: UTF8.self))
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
