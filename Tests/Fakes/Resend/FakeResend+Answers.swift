import FoundationEssentials
import Synchronization

extension FakeResend {
    /// nil: the request was taken, and its answer is lost.
    func respond(to request: FakeRequest, _ reading: Reading, _ script: ResendScript) -> ResendRecords.Answer? {
        switch script.outage {
        case .key: return ResendRecords.problem(403, "invalid_api_key", "API key is invalid")
        case .quota:
            return ResendRecords.problem(429, "daily_quota_exceeded", "You have reached your daily email quota.")
        case .broken: return ResendRecords.problem(500, "internal_server_error", "Something went wrong.")
        case .gateway: return ResendRecords.Answer(status: 503, body: "<html>no upstream</html>")
        case .none, .silent, .reset, .closed: break
        }
        guard let token = request["authorization"], token.hasPrefix("Bearer ") else {
            return ResendRecords.problem(401, "missing_api_key", "Missing API key in the authorization header.")
        }
        guard script.keys.contains(String(token.dropFirst(7))) else {
            return ResendRecords.problem(403, "invalid_api_key", "API key is invalid")
        }
        switch (request.method, request.path) {
        case ("POST", "/emails"): return send(request, reading, script, isBatch: false)
        case ("POST", "/emails/batch"): return send(request, reading, script, isBatch: true)
        case ("GET", let path) where path.hasPrefix("/emails/"): return show(String(path.dropFirst(8)))
        case (_, "/emails"), (_, "/emails/batch"):
            return ResendRecords.problem(405, "method_not_allowed", "Method is not allowed.")
        default: return ResendRecords.problem(404, "not_found", "The requested endpoint does not exist.")
        }
    }

    private func send(
        _ request: FakeRequest, _ reading: Reading, _ script: ResendScript, isBatch: Bool
    ) -> ResendRecords.Answer? {
        let key = request["idempotency-key"]
        if let key {
            guard (1...256).contains(key.utf8.count) else {
                return ResendRecords.problem(400, "invalid_idempotency_key", "The key must be between 1-256 chars.")
            }
            let (hash, now) = (reading.digest(), now)
            switch state.withLock({ $0.records.open("\(request.path) \(key)", hash: hash, now: now) }) {
            case .replay(let answer), .refused(let answer): return answer
            case .new: break
            }
        }
        let (answer, isDone, isLost) = take(request, reading, script, isBatch: isBatch, key: key ?? "")
        if let key {
            let kept = isDone
            state.withLock { $0.records.close("\(request.path) \(key)", kept) }
        }
        return isLost ? nil : answer
    }

    /// The answer, what is kept of it under the key, and whether it gets lost.
    private func take(
        _ request: FakeRequest, _ reading: Reading, _ script: ResendScript, isBatch: Bool, key: String
    ) -> (ResendRecords.Answer, kept: ResendRecords.Answer?, isLost: Bool) {
        let problem = ResendRecords.problem(500, "internal_server_error", "Something went wrong.")
        guard let json = reading.value() else {
            return (ResendRecords.problem(400, "validation_error", "The body is not valid JSON."), nil, false)
        }
        let now = now
        switch ResendRules.mails(json, isBatch: isBatch, key: key, bytes: reading.count, now: now) {
        case .failure(let why): return (ResendRecords.problem(422, why.name, why.message), nil, false)
        case .success(let mails):
            let recipients = mails.reduce(0) { $0 + $1.to.count + $1.cc.count + $1.bcc.count }
            let (before, after, lost, isOver) = state.withLock { state -> (Bool, Bool, Bool, Bool) in
                let before = state.random.happens(script.failBefore)
                let (after, lost) = (state.random.happens(script.failAfter), state.random.happens(script.lost))
                guard !before else { return (true, false, false, false) }
                let isOver = state.records.overQuota(script.dailyQuota, adding: recipients, now: now)
                if !isOver { state.records.accept(mails) }
                return (false, after, lost, isOver)
            }
            if before { return (problem, nil, false) }
            if isOver {
                return (
                    ResendRecords.problem(429, "daily_quota_exceeded", "You have reached your daily email quota."), nil,
                    false
                )
            }
            let ids = mails.map { #"{"id":"\#($0.id)"}"# }
            let answer = ResendRecords.Answer(
                status: 200, body: isBatch ? "{\"data\":[\(ids.joined(separator: ","))]}" : ids[0])
            tell(mails, script)
            return (after ? problem : answer, answer, lost)
        }
    }

    private func show(_ id: String) -> ResendRecords.Answer {
        guard let mail = state.withLock({ $0.records.mail(id) }) else {
            return ResendRecords.problem(404, "not_found", "Email not found")
        }
        let email = Email(
            object: "email", id: id, message_id: "<\(id)@email.example.com>", to: mail.to, from: mail.from,
            created_at: Date(timeIntervalSince1970: mail.at).formatted(.iso8601), subject: mail.subject, bcc: mail.bcc,
            cc: mail.cc, reply_to: [], last_event: mail.lastEvent)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        return ResendRecords.Answer(
            status: 200, body: (try? encoder.encode(email)).map { String(decoding: $0, as: UTF8.self) } ?? "{}")
    }

    private struct Email: Encodable {
        var object, id, message_id: String
        var to: [String]
        var from, created_at, subject: String
        var bcc, cc, reply_to: [String]
        var last_event: String
    }

    /// The life of each message as its events tell it. Addresses decide: bounced@…, complained@…, delayed@…, suppressed@….
    private func tell(_ mails: [AcceptedMail], _ script: ResendScript) {
        for mail in mails {
            let local = ResendRules.bare(mail.to[0]).prefix { $0 != "@" && $0 != "+" }
            let life: [String] =
                switch local {
                case "bounced": ["email.sent", "email.bounced"]
                case "complained": ["email.sent", "email.delivered", "email.complained"]
                case "delayed": ["email.sent", "email.delivery_delayed", "email.delivered"]
                case "suppressed": ["email.suppressed"]
                default: ["email.sent", "email.delivered"]
                }
            state.withLock { $0.records.happened(String(life[life.count - 1].dropFirst(6)), to: mail.id) }
            guard !script.webhook.isEmpty else { continue }
            for (index, type) in life.enumerated() {
                let (wait, isTwice) = state.withLock { state in
                    (
                        script.shuffleMilliseconds > 0
                            ? Double.random(in: 0..<script.shuffleMilliseconds, using: &state.random) / 1000 : 0,
                        state.random.happens(script.twice)
                    )
                }
                postman.post(type, mail, after: wait + Double(index) / 1000, isTwice: isTwice)
            }
        }
    }
}
