import MillraceJobs

extension Practice {
    /// An order as small as it can be: two steps, and a mail about them.
    struct MailedOrder: Job {
        static let kind = "practice.mailed_order"
        var order: Int
        var recipient: String
    }

    /// The room of mail sends it, if the worker serves that.
    struct OrderMail: Job {
        static let kind = "mail.send"
        var recipients: [String]
        var subject: String
        var text: String

        enum CodingKeys: String, CodingKey {
            case recipients, subject
            case text = "body_text"
        }
    }

    static let mailedOrderHandler = Handler(MailedOrder.self) { job, context in
        let reserved = try await context.step("reserve") { job.order }
        let charged = try await context.step("charge") { reserved * 100 }
        let mail = OrderMail(
            recipients: [job.recipient], subject: "Order \(reserved)", text: "We have charged \(charged) cents.")
        try await context.spawn([mail])
        return .done
    }
}
