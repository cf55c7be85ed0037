import Faults
import FoundationEssentials
import Transfers

/// What Resend's answer means for the letters of a request. Pure.
struct ResendAnswer {
    let status: Int
    let body: [UInt8]
    let retryAfter: String?

    init(_ response: HTTPResponse) {
        status = response.status
        body = response.body
        retryAfter = response.headers["retry-after"]
    }

    init(status: Int, body: String, retryAfter: String? = nil) {
        self.status = status
        self.body = Array(body.utf8)
        self.retryAfter = retryAfter
    }

    private struct One: Decodable { var id: String }
    private struct Many: Decodable { var data: [One] }
    private struct Problem: Decodable { var name: String }

    func handovers(_ count: Int, now: Date) -> [SendOutcome] {
        if (200...299).contains(status), let ids = ids(count) { return ids.map { .accepted(id: $0) } }
        let one = refusal(now)
        return (0..<count).map { _ in one }
    }

    private func ids(_ count: Int) -> [String]? {
        let data = Data(body)
        if count == 1 { return (try? JSONDecoder().decode(One.self, from: data)).map { [$0.id] } }
        guard let many = try? JSONDecoder().decode(Many.self, from: data), many.data.count == count else { return nil }
        return many.data.map(\.id)
    }

    private func refusal(_ now: Date) -> SendOutcome {
        let fault = fault(now: now)
        switch status {
        case 200...299:
            return .unknown(
                Fault(.unknown, code: code, "Resend accepted it, but the rest of its answer cannot be read"))
        case 408, 500...599: return .unknown(fault)
        case 409 where name == "invalid_idempotent_request":
            return .unknown(fault)  // something was accepted under this key
        case 409: return .unknown(fault)  // the first request under this key has not ended
        case 429: return .throttled(fault)
        default: return .refused(fault)
        }
    }

    func fault(now: Date) -> Fault {
        let wait = retryAfter.flatMap { Double($0) }.map { Duration.seconds(max(0, min($0, 86_400 * 31))) }
        switch (status, name) {
        case (200...299, _): return Fault(.unknown, code: code, "Resend's answer cannot be read")
        case (300...399, _):
            return Fault(.unavailable, code: code, "the address of Resend leads elsewhere: check RESEND_BASE_URL")
        case (401, _):
            return Fault(
                .authentication, code: code, "Resend does not accept the key, or not for sending: check RESEND_API_KEY")
        case (403, _):
            return Fault(
                .authentication, code: code,
                "Resend refuses this key or this sender: check RESEND_API_KEY, and that the domain of the sender is verified"
            )
        case (408, _), (500...599, _):
            return Fault(
                status == 408 || status == 504 ? .timeout : .unknown, code: code,
                "Resend failed while processing this", wait: wait)
        case (409, "invalid_idempotent_request"):
            return Fault(.conflict, code: code, "something else was sent under this key")
        case (409, "concurrent_idempotent_requests"):
            return Fault(.unknown, code: code, "the first request under this key has not ended", wait: wait)
        case (409, _): return Fault(.conflict, code: code, "Resend sees a conflict")
        case (413, _): return Fault(.tooLarge, code: code, "the message is larger than Resend accepts")
        case (429, "daily_quota_exceeded"):
            return Fault(.quota, code: code, "the day's quota is used up", wait: wait ?? Self.untilMidnight(now))
        case (429, "monthly_quota_exceeded"):
            return Fault(.quota, code: code, "the month's quota is used up", wait: wait ?? Self.untilNextMonth(now))
        case (429, _): return Fault(.throttled, code: code, "faster than Resend allows", wait: wait ?? .seconds(1))
        case (451, _): return Fault(.permission, code: code, "Resend considers this message dangerous")
        case (404, _), (405, _):
            return Fault(.unsupported, code: code, "Resend does not know this call: check RESEND_BASE_URL")
        default: return Fault(.invalid, code: code, "Resend does not accept this message")
        }
    }

    private var name: String? {
        guard let name = (try? JSONDecoder().decode(Problem.self, from: Data(body)))?.name, name.utf8.count <= 64,
            name.utf8.allSatisfy({ isLetterOrDigit($0) || $0 == UInt8(ascii: "_") })
        else { return nil }
        return name
    }

    private var code: String { name.map { "\(status) \($0)" } ?? "\(status)" }

    static func untilMidnight(_ now: Date) -> Duration {
        let seconds = now.timeIntervalSince1970
        return .seconds(86_400 - seconds.truncatingRemainder(dividingBy: 86_400))
    }

    static func untilNextMonth(_ now: Date) -> Duration {
        let month = MessageDate.compact(now).dropFirst(4).prefix(2)
        var day = now
        while MessageDate.compact(day).dropFirst(4).prefix(2) == month { day += 86_400 }
        return .seconds(day.timeIntervalSince(now)) - (.seconds(86_400) - untilMidnight(now))
    }
}
