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
    /// Of the app, as templates call it.
    package var appName: String?
    package var resetURL: String?
    package var verifyURL: String?
    /// Of one request, with the wait for its turn.
    package var timeout = Duration.seconds(30)
    /// Of one run of a job.
    package var total = Duration.seconds(60)
    /// Nobody else takes up a request of one run before.
    var hold: Duration { total + timeout }
    package var sendRules = SendMachine.Rules()
    package var senderRate: Rate?
    package var domainRate: Rate?
    package var routes = Routes(chosen: "outbox")
    /// Requests under way at once for mail that nobody waits for.
    package var bulkRequests = 16
    /// Messages that the chosen provider takes before its quota is used up. The last tenth is for what somebody waits for.
    package var quota: Int64?
    package var links: Links?
    /// Of a message's content, after which it is taken away; nil: never.
    package var keep: Duration?

    package init() {}
}
