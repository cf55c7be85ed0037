import FoundationEssentials

/// The fake's memory. Pure, except for the ids that it makes.
struct ResendRecords {
    struct Answer: Sendable {
        var status: Int
        var body: String
    }

    enum Key {
        case new
        case replay(Answer)
        case refused(Answer)
    }

    private struct Kept {
        var hash: [UInt8]
        var answer: Answer?
        var at: Double
    }

    private(set) var accepted: [AcceptedMail] = []
    private var places: [String: Int] = [:]
    private var kept: [String: Kept] = [:]
    private var second = 0
    private var inSecond = 0
    private var day = 0
    private(set) var usedToday = 0
    private(set) var answered: [Int: Int] = [:]
    private(set) var requests = 0
    private(set) var lost = 0
    private(set) var perSecond: [Int: Int] = [:]
    private(set) var replayed = 0

    static func problem(_ status: Int, _ name: String, _ message: String) -> Answer {
        Answer(status: status, body: #"{"statusCode":\#(status),"name":"\#(name)","message":"\#(message)"}"#)
    }

    /// nil when it is within the rate; what is left of this second otherwise counts down to 0.
    mutating func enter(rate: Int, window: Double, now: Double) -> (isWithin: Bool, left: Int) {
        requests += 1
        perSecond[Int(now), default: 0] += 1
        let current = Int(now / window)
        if current != second { (second, inSecond) = (current, 0) }
        guard rate > 0 else { return (true, 0) }
        guard inSecond < rate else { return (false, 0) }
        inSecond += 1
        return (true, rate - inSecond)
    }

    mutating func open(_ key: String, hash: [UInt8], now: Double) -> Key {
        if let found = kept[key], now - found.at < 86_400 {
            guard found.hash == hash else {
                return .refused(
                    Self.problem(
                        409, "invalid_idempotent_request", "Same idempotency key used with a different request payload."
                    ))
            }
            guard let answer = found.answer else {
                return .refused(
                    Self.problem(
                        409, "concurrent_idempotent_requests",
                        "Same idempotency key used while the original request is in progress."))
            }
            replayed += 1
            return .replay(answer)
        }
        kept[key] = Kept(hash: hash, answer: nil, at: now)
        return .new
    }

    mutating func close(_ key: String, _ answer: Answer?) {
        if let answer { kept[key]?.answer = answer } else { kept[key] = nil }
    }

    mutating func overQuota(_ quota: Int, adding count: Int, now: Double) -> Bool {
        if day != Int(now / 86_400) { (day, usedToday) = (Int(now / 86_400), 0) }
        guard quota == 0 || usedToday + count <= quota else { return true }
        usedToday += count
        return false
    }

    mutating func accept(_ mails: [AcceptedMail]) {
        for mail in mails {
            places[mail.id] = accepted.count
            accepted.append(mail)
        }
    }

    mutating func note(_ status: Int) { answered[status, default: 0] += 1 }
    mutating func noteLost() { lost += 1 }

    func mail(_ id: String) -> AcceptedMail? { places[id].map { accepted[$0] } }

    mutating func happened(_ event: String, to id: String) {
        if let place = places[id] { accepted[place].lastEvent = event }
    }
}

/// A message that the fake has taken.
package struct AcceptedMail: Sendable, Codable, Equatable {
    package var id: String
    /// "" when there was none.
    package var key: String
    /// Its place in its request.
    package var index: Int
    package var from: String
    package var to: [String]
    package var cc: [String]
    package var bcc: [String]
    package var subject: String
    package var tags: [String: String]
    package var attachments: Int
    /// Of the whole request's body.
    package var bytes: Int
    package var at: Double
    package var lastEvent: String
}
