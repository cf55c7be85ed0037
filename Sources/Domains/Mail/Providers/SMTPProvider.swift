package import Faults
package import FoundationEssentials
package import Supervision
package import Transfers

/// An SMTP server. It has no idempotency keys: a letter whose answer was lost after the final dot stays unknown, and only the Message-ID
/// shows that two copies are one message.
package struct SMTPProvider: MailProvider {
    /// The server's reply for one recipient of a letter; other recipients may have got the letter.
    package struct Answer: Sendable, Equatable {
        package var recipient: Mailbox
        /// nil: the server took the message for this recipient.
        package var fault: Fault?
    }

    package let name = "smtp"
    package let capabilities = Capabilities()
    private let transport: MailTransport
    private let blobs: BlobSource
    private let told: @Sendable (UUID, [Answer]) async -> Void

    /// - Parameter told: Called with the replies for each recipient of a letter, once the server has answered.
    package init(
        _ transport: MailTransport, blobs: BlobSource,
        told: @escaping @Sendable (UUID, [Answer]) async -> Void = { _, _ in }
    ) {
        self.transport = transport
        self.blobs = blobs
        self.told = told
    }

    package func objection(to letter: Letter) -> String? {
        do { try letter.check() } catch { return error.description }
        return nil
    }

    package func send(_ letters: [Letter], key: String, call: Call) async -> [SendOutcome] {
        var handovers: [SendOutcome] = []
        for letter in letters { handovers.append(await send(letter)) }
        return handovers
    }

    package func status(of id: String, call: Call) async throws(Fault) -> String? { nil }

    private func send(_ letter: Letter) async -> SendOutcome {
        // An address that is named twice counts as one recipient.
        var recipients: [Mailbox] = []
        for box in letter.recipients where !recipients.contains(where: { $0.address == box.address }) {
            recipients.append(box)
        }
        let addresses = recipients.map(\.address)
        let wire = Message.wire(letter)
        let outcome: Result<MailResult, MailFailure>
        var reading: (any Error)?
        if let whole = wire.whole {
            outcome = await attempt(SMTPEnvelope(from: letter.from.address, to: addresses, message: whole))
        } else {
            let length = wire.length
            (outcome, reading) = await wire.streamed(from: blobs) { handing in
                let envelope = SMTPEnvelope(
                    from: letter.from.address, to: addresses, length: length, next: { try await handing.next() })
                return (await attempt(envelope), handing.failure)
            }
        }
        switch outcome {
        case .success(let result):
            let answers = zip(recipients, result.recipients).map { box, reply in
                Answer(recipient: box, fault: reply.flatMap { $0.isAccepted ? nil : Self.fault($0, "a recipient") })
            }
            if result.stage == .accepted || result.stage == .recipients { await told(letter.id, answers) }
            return Self.judge(result)
        case .failure(let failure):
            if let reading, !failure.transfer.outcomeIsUnknown {
                return .refused(Fault(.internal, "an attachment could not be read: \(reading)"))
            }
            if !failure.transfer.outcomeIsUnknown, let reply = failure.reply, !reply.isAccepted {
                return .refused(Self.fault(reply, "the session"))
            }
            return .failed(failure.transfer)
        }
    }

    private func attempt(_ envelope: SMTPEnvelope) async -> Result<MailResult, MailFailure> {
        do throws(MailFailure) {
            return .success(try await transport.send(envelope))
        } catch {
            return .failure(error)
        }
    }

    static func judge(_ result: MailResult) -> SendOutcome {
        switch result.stage {
        case .accepted: return .accepted(id: queueID(result.reply?.text ?? ""))
        case .recipients:
            // Nobody was accepted. If one recipient may be accepted later, the letter is tried again.
            let replies = result.recipients.compactMap { $0 }
            guard let reply = replies.first(where: \.isTemporary) ?? replies.first else {
                return .refused(Fault(.transient, "the server asked for no recipient"))
            }
            return refused(fault(reply, replies.count == 1 ? "the recipient" : "all recipients"))
        case .session:
            return refused(result.reply.map { fault($0, "the session") } ?? Fault(.transient, "the session ended"))
        case .sender:
            return refused(result.reply.map { fault($0, "the sender") } ?? Fault(.transient, "the sender was refused"))
        case .data:
            return refused(
                result.reply.map { fault($0, "the message") } ?? Fault(.transient, "the message was refused"))
        }
    }

    private static func refused(_ fault: Fault) -> SendOutcome {
        fault.kind == .throttled ? .throttled(fault) : .refused(fault)
    }

    /// A server's text may contain addresses, so it is left out.
    static func fault(_ reply: MailReply, _ what: String) -> Fault {
        let first = reply.text.split(separator: " ").first.map(String.init) ?? ""
        let parts = first.split(separator: ".", omittingEmptySubsequences: false)
        let isEnhanced =
            parts.count == 3 && parts.allSatisfy { !$0.isEmpty && $0.count <= 3 && $0.utf8.allSatisfy(isDigit) }
        var kind = ErrorClass(smtp: reply.code, enhanced: isEnhanced ? first : nil) ?? .transient
        // A temporary reply never ends a letter, whatever its detail code says.
        if reply.isTemporary, kind.retry == .never { kind = reply.code == 452 ? .throttled : .transient }
        let code = isEnhanced ? "\(reply.code) \(first)" : "\(reply.code)"
        return Fault(
            kind, code: code,
            "the server \(reply.isTemporary ? "does not take" : "refuses") \(what)\(reply.isTemporary ? " for now" : "")"
        )
    }

    /// `2.0.0 Ok: queued as 4XyZ`, as most servers have it.
    static func queueID(_ text: String) -> String? {
        let words = text.split(separator: " ")
        guard let at = words.indices.dropLast(2).first(where: { words[$0] == "queued" && words[$0 + 1] == "as" }) else {
            return nil
        }
        let id = words[at + 2].prefix { isLetterOrDigit($0.utf8.first ?? 0) || "-._".contains($0) }
        return id.isEmpty ? nil : String(id.prefix(100))
    }
}
