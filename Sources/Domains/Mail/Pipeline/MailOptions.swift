package import Signatures

/// The settings of the mail service.
package struct MailOptions: Sendable {
    /// At most `count` within each `span`.
    package struct Rate: Sendable, Equatable {
        package var count: Int
        package var span: Duration

        package init(count: Int, span: Duration) {
            self.count = count
            self.span = span
        }
    }

    package var from = Mailbox(address: "")
    /// The app's name, as templates use it.
    package var appName: String?
    package var resetURL: String?
    package var verifyURL: String?
    /// The time limit of one request, including the wait for its turn.
    package var timeout = Duration.seconds(30)
    /// The time limit of one run of a job.
    package var total = Duration.seconds(60)
    /// Until then no other worker takes over a request of this run.
    var hold: Duration { total + timeout }
    package var sendRules = SendMachine.Rules()
    package var senderRate: Rate?
    package var domainRate: Rate?
    package var routes = Routes(chosen: "outbox")
    /// How many requests of non-urgent mail may be under way at once.
    package var bulkRequests = 16
    /// How many messages the chosen provider takes before its quota is used up. The last tenth is kept for urgent mail.
    package var quota: Int64?
    package var links: Links?
    /// How long a message's content is kept; nil: forever.
    package var keep: Duration?

    package init() {}
}
