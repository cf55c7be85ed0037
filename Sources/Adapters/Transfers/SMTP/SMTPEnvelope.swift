import Glibc

/// A message for SMTP, and who it is for.
package struct SMTPEnvelope: Sendable {
    /// Empty: no bounces are wanted.
    package var from: String
    package var recipients: [String]
    var message: Message

    enum Message: Sendable {
        case whole([UInt8])
        /// Pieces, asked for one after the other as the server takes them; nil ends it.
        case stream(length: Int, next: @Sendable () async throws -> [UInt8]?)
    }

    /// - Parameter message: With its header, every line ended by CR LF.
    package init(from: String, to recipients: [String], message: [UInt8]) {
        self.from = from
        self.recipients = recipients
        self.message = .whole(message)
    }

    /// One that is never held as a whole; it is checked while it goes, and cut off before its end when something is wrong with it.
    package init(
        from: String, to recipients: [String], length: Int, next: @escaping @Sendable () async throws -> [UInt8]?
    ) {
        self.from = from
        self.recipients = recipients
        message = .stream(length: length, next: next)
    }

    var length: Int {
        switch message {
        case .whole(let bytes): bytes.count
        case .stream(let length, _): length
        }
    }

    /// What must not be sent to a server; it names places, never addresses.
    var complaint: String? {
        if !from.isEmpty, let why = Self.complaint(about: from) { return "the sender's address \(why)" }
        if recipients.isEmpty { return "there is no recipient" }
        for (index, recipient) in recipients.enumerated() {
            if let why = Self.complaint(about: recipient) { return "the address of recipient \(index + 1) \(why)" }
        }
        switch message {
        case .whole(let bytes):
            var lines = LineCheck()
            return bytes.withUnsafeBytes { lines.add($0) } ?? lines.end
        case .stream(let length, _):
            return length >= 2 ? nil : LineCheck().end
        }
    }

    private static func complaint(about address: String) -> String? {
        if address.utf8.count > 320 { return "is longer than 320 bytes" }
        if address.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f || "<>\"\\".utf8.contains($0) }) {
            return "holds a space, a quote, a bracket or a control character"
        }
        let parts = address.split(separator: "@", omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy { !$0.isEmpty } ? nil : "is not of the form name@host"
    }
}

extension SMTPEnvelope: CustomStringConvertible, CustomReflectable {
    package var description: String { "a message for \(recipients.count) recipients" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A reply of the server's: its number and its words, cut to 500 bytes.
package struct MailReply: Sendable, Equatable {
    package var code: Int
    package var text: String

    package var isAccepted: Bool { (200..<400).contains(code) }
    /// The same may be tried again later.
    package var isTemporary: Bool { (400..<500).contains(code) }
}

/// The result of a message whose outcome is known.
package struct MailResult: Sendable, Equatable {
    package enum Stage: Sendable, Equatable {
        /// Greeting, TLS, credentials: what ends there is a failure and no result.
        case session
        case sender
        case recipients
        /// The server did not want the data, or refused them at their end.
        case data
        case accepted
    }

    /// The stage at which it ended.
    package var stage: Stage
    /// To each recipient, in their order; nil when it was not asked.
    package var recipients: [MailReply?]
    /// The last one.
    package var reply: MailReply?

    /// The message was taken for these recipients, by their place.
    package var accepted: [Int] {
        stage == .accepted ? recipients.indices.filter { recipients[$0]?.isAccepted == true } : []
    }
}

/// Why a message failed, or why its outcome is unknown. `transfer.outcomeIsUnknown` only after the final dot may have been sent.
package struct MailFailure: Error, Sendable, Equatable, CustomStringConvertible {
    package var transfer: TransferError
    package var recipients: [MailReply?]
    package var reply: MailReply?

    package var description: String { transfer.description }
}

/// Checks a message's bytes as they come for what must not be in them.
struct LineCheck: Sendable {
    private var before: UInt8 = 0
    private var last: UInt8 = 0

    mutating func add(_ bytes: UnsafeRawBufferPointer) -> String? {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return nil }
        func find(_ byte: UInt8, _ from: Int, _ to: Int) -> Int? {
            memchr(base + from, Int32(byte), to - from).map { $0 - UnsafeMutableRawPointer(mutating: base) }
        }
        // A line end that two servers read differently is how one message becomes two.
        let complaint = "the message has a line end that is not CR LF"
        if find(0, 0, bytes.count) != nil { return "the message holds a NUL" }
        var start = 0
        if last == 0x0d {
            guard bytes[0] == 0x0a else { return complaint }
            start = 1
        }
        while start < bytes.count {
            let end = find(0x0d, start, bytes.count) ?? bytes.count
            if find(0x0a, start, end) != nil { return complaint }
            if end + 1 < bytes.count, bytes[end + 1] != 0x0a { return complaint }
            start = end + 2
        }
        before = bytes.count > 1 ? bytes[bytes.count - 2] : last
        last = bytes[bytes.count - 1]
        return nil
    }

    var end: String? { before == 0x0d && last == 0x0a ? nil : "the message does not end with a line end" }
}
