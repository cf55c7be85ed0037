package import FoundationEssentials

/// An event from Resend about a message. Events may come late, out of order, and repeatedly.
package struct ResendEvent: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
        case scheduled, sent, delivered, delivery_delayed, bounced, complained, opened, clicked, failed, suppressed
    }

    package enum Bounce: String, Sendable {
        case permanent = "Permanent"
        case transient = "Transient"
        case undetermined = "Undetermined"
    }

    package var kind: Kind
    /// When it happened.
    package var at: Date
    /// Resend's own id of the message.
    package var id: String
    /// Our id, from the tag of the message.
    package var message: UUID?
    /// All of the message's recipients: Resend does not say which of them the event concerns.
    package var recipients: [String]
    package var bounce: Bounce?
    package var bounceDetail: String?
    /// Why it failed or was suppressed.
    package var reason: String?
    package var link: String?

    /// nil: an event of a kind that is not about a message we sent. Throws if the body is not an event.
    package static func read(_ body: [UInt8]) throws -> ResendEvent? {
        struct Kinds: Decodable { var type: String }
        let data = Data(body)
        let type = try JSONDecoder().decode(Kinds.self, from: data).type
        guard type.hasPrefix("email."), let kind = Kind(rawValue: String(type.dropFirst(6))) else { return nil }
        let told = try JSONDecoder().decode(Told.self, from: data)
        guard let at = time(told.created_at) else {
            throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "created_at is not a time"))
        }
        var event = ResendEvent(kind: kind, at: at, id: told.data.email_id, recipients: told.data.to ?? [])
        event.message = told.data.tags?.value(ResendProvider.tag).flatMap { UUID(uuidString: $0) }
        event.bounce = told.data.bounce.map { $0.type.flatMap { Bounce(rawValue: $0) } ?? .undetermined }
        event.bounceDetail = told.data.bounce?.subType
        event.reason = told.data.failed?.reason ?? told.data.suppressed?.reason
        event.link = told.data.click?.link
        return event
    }

    private struct Told: Decodable {
        struct Content: Decodable {
            var email_id: String
            var to: [String]?
            var tags: Tags?
            var bounce: BounceTold?
            var failed: Reason?
            var suppressed: Reason?
            var click: Click?
        }
        struct BounceTold: Decodable {
            var type: String?
            var subType: String?
        }
        struct Reason: Decodable { var reason: String? }
        struct Click: Decodable { var link: String? }
        var created_at: String
        var data: Content
    }

    /// The tags as an object of names and values, or as a list.
    private enum Tags: Decodable {
        struct Pair: Decodable { var name, value: String }
        case object([String: String])
        case list([Pair])

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let object = try? value.decode([String: String].self) {
                self = .object(object)
            } else {
                self = .list((try? value.decode([Pair].self)) ?? [])
            }
        }

        func value(_ name: String) -> String? {
            switch self {
            case .object(let object): object[name]
            case .list(let list): list.first { $0.name == name }?.value
            }
        }
    }

    /// `2026-11-22T23:41:12.126Z`, or with a space and an offset as Postgres prints it.
    static func time(_ text: String) -> Date? {
        var text = text.replacing(" ", with: "T")
        if text.count > 3, let sign = text.dropLast(2).last, sign == "+" || sign == "-", !text.contains("Z") {
            text += ":00"
        }
        return (try? Date(text, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)))
            ?? (try? Date(text, strategy: Date.ISO8601FormatStyle()))
    }
}
