import Threads

/// Sends messages to an SMTP server: only the transport.
///
/// Each connection has its own thread, apart from the loop of the HTTP client: libcurl's SMTP waits for the reply to the final dot within
/// its call, and would block everything else on a loop while the server thinks.
package final class MailTransport: Sendable {
    package enum Security: Sendable {
        /// STARTTLS, or no message.
        case required
        /// STARTTLS where it is offered; never with a password.
        case opportunistic
        case none
        /// TLS from the first byte.
        case implicit
    }

    package struct Configuration: Sendable {
        package var host: String
        package var port: Int
        package var security: Security
        package var user: String?
        package var password: String?
        /// Our name in EHLO; nil for the machine's name.
        package var name: String?
        package var trust = Trust()
        package var limits = TransferLimits()
        /// Messages at a time.
        package var mostConnections = 4
        package var connectionLife = Duration.seconds(300)
        package var idleLife = Duration.seconds(50)

        package init(host: String, port: Int, security: Security = .required) {
            self.host = host
            self.port = port
            self.security = security
        }
    }

    private let lanes: Lanes

    package init(_ configuration: Configuration) throws(TransferError) {
        lanes = Lanes(try MailPlan(configuration), most: configuration.mostConnections)
    }

    deinit { lanes.close() }

    package func close() { lanes.close() }

    /// Returns when the server has decided, for or against; throws when it has not. Cancelling the task ends it at once.
    package func send(_ envelope: SMTPEnvelope) async throws(MailFailure) -> MailResult {
        if let complaint = envelope.complaint {
            throw MailFailure(
                transfer: TransferError(.invalid, .unsent, complaint),
                recipients: Array(repeating: nil, count: envelope.recipients.count))
        }
        let delivery = MailDelivery(envelope, deadline: .now + lanes.plan.configuration.limits.total)
        guard case .stream = envelope.message else { return try await carry(delivery).get() }
        async let _: Void = delivery.fill()  // leaving ends it
        return try await carry(delivery).get()
    }

    private func carry(_ delivery: MailDelivery) async -> Result<MailResult, MailFailure> {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in lanes.post(delivery, continuation) }
        } onCancel: {
            delivery.giveUp()
            lanes.withdraw(delivery)
        }
    }
}

extension MailTransport.Configuration: CustomStringConvertible, CustomReflectable {
    package var description: String { "an SMTP server" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}
