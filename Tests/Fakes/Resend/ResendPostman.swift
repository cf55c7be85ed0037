import FoundationEssentials
import Glibc
import Signatures
import Synchronization
import Threads

/// Delivers events as Resend does: signed, at least once, in no order, and again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h when
/// the answer is not a good one.
package final class ResendPostman: Sendable {
    package struct Figures: Sendable, Codable {
        package var waiting = 0
        package var delivered = 0
        package var tries = 0
        package var givenUp = 0
    }

    private struct Event: Sendable {
        var id: String
        var body: [UInt8]
        var due: Double
        var tries = 0
        var again = 0
    }

    private struct State {
        var events: [Event] = []
        var figures = Figures()
        var isStopped = false
    }

    private static let pauses = [5.0, 300, 1800, 7200, 18_000, 36_000, 36_000]
    private let state = Mutex(State())

    package var figures: Figures {
        state.withLock { state in
            var figures = state.figures
            figures.waiting = state.events.count
            return figures
        }
    }

    func start(_ script: @escaping @Sendable () -> ResendScript) {
        for _ in 0..<4 {
            Thread.start(name: "resend-postman") { [self] in
                while !state.withLock({ $0.isStopped }) {
                    guard let event = due() else {
                        usleep(5000)
                        continue
                    }
                    let now = script()
                    finish(event, isGood: deliver(event, now), now.retryScale)
                }
            }
        }
    }

    func stop() { state.withLock { $0.isStopped = true } }

    func post(_ type: String, _ mail: AcceptedMail, after wait: Double, isTwice: Bool) {
        struct Envelope: Encodable {
            var type, created_at: String
            var data: Content
        }
        struct Bounce: Encodable {
            var type = "Permanent"
            var subType = "General"
            var message = "The recipient's server refused the message."
            var diagnosticCode = ["smtp; 550 5.1.1 no such user"]
        }
        struct Content: Encodable {
            var email_id, created_at, from, subject: String
            var to: [String]
            var tags: [String: String]
            var bounce: Bounce?
        }
        let now = Date()
        var content = Content(
            email_id: mail.id, created_at: Date(timeIntervalSince1970: mail.at).formatted(.iso8601), from: mail.from,
            subject: mail.subject, to: mail.to, tags: mail.tags)
        if type == "email.bounced" { content.bounce = Bounce() }
        let event = Envelope(type: type, created_at: now.formatted(.iso8601), data: content)
        guard let body = try? JSONEncoder().encode(event) else { return }
        let id = "msg_\(UUID().uuidString)"
        state.withLock {
            $0.events.append(
                Event(id: id, body: Array(body), due: now.timeIntervalSince1970 + wait, again: isTwice ? 1 : 0))
        }
    }

    private func due() -> Event? {
        let now = Date().timeIntervalSince1970
        return state.withLock { state in
            guard let index = state.events.indices.min(by: { state.events[$0].due < state.events[$1].due }),
                state.events[index].due <= now
            else { return nil }
            return state.events.remove(at: index)
        }
    }

    private func finish(_ event: Event, isGood: Bool, _ scale: Double) {
        var event = event
        state.withLock { state in
            state.figures.tries += 1
            let now = Date().timeIntervalSince1970
            if isGood {
                state.figures.delivered += event.tries == 0 || event.again == 0 ? 1 : 0
                guard event.again > 0 else { return }
                event.again -= 1
                event.due = now + 0.02
            } else if event.tries < Self.pauses.count {
                event.due = now + Self.pauses[event.tries] * scale
                event.tries += 1
            } else {
                state.figures.givenUp += 1
                return
            }
            state.events.append(event)
        }
    }

    /// True for 200 to 299.
    private func deliver(_ event: Event, _ script: ResendScript) -> Bool {
        guard script.webhook.hasPrefix("http://"), let secrets = try? Webhook.Secret.list(script.secret) else {
            return false
        }
        let rest = script.webhook.dropFirst(7)
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        guard let colon = rest[..<slash].lastIndex(of: ":"), let port = Int(rest[rest.index(after: colon)..<slash])
        else {
            return false
        }
        let path = slash == rest.endIndex ? "/" : String(rest[slash...])
        let stamp = Int(Date().timeIntervalSince1970 + script.aheadSeconds)
        let signature = Webhook.sign(event.body, id: event.id, at: stamp, with: secrets)
        let head = """
            POST \(path) HTTP/1.1\r
            Host: 127.0.0.1:\(port)\r
            Connection: close\r
            User-Agent: Svix-Webhooks/1.0\r
            Content-Type: application/json\r
            Content-Length: \(event.body.count)\r
            svix-id: \(event.id)\r
            svix-timestamp: \(stamp)\r
            svix-signature: \(signature)\r
            \r

            """
        guard let connection = try? RawConnection(to: port) else { return false }
        defer { connection.end() }
        guard connection.write(Array(head.utf8) + event.body), let answer = connection.readHead() else { return false }
        return answer.dropFirst(9).first == "2"
    }
}
