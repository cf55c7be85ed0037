import CommandKit
import Glibc
import JSON
import LoadKit
import Synchronization

/// The providers of all rooms on one port of loopback: all well, or all down. While they are down they answer 503, or take requests and answer nothing.
final class RecoveryServer: Sendable {
    enum Room: String, CaseIterable, Sendable {
        case mail, notices, pushes, ai, webhooks
        /// Questions that may wait: one caller, their batch's job, whatever their number. Its provider is that of ``ai``.
        case batches = "AI batches"
        /// Mail of which nobody knows whether the provider took it.
        case doubts = "mail in doubt"

        /// Those whose provider answers 503 while it is down.
        static let refused: [Room] = [.mail, .notices, .pushes, .ai, .webhooks]

        /// How its work of one outage is marked; two rooms of one table have two words.
        var mark: String {
            switch self {
            case .mail, .notices, .ai, .webhooks: "down"
            case .pushes: "push"
            case .batches: "batch"
            case .doubts: "lost"
            }
        }

        /// As the supervisor calls it; of webhooks the target's id is missing.
        var provider: String {
            switch self {
            case .mail, .doubts: "resend"
            case .notices: "sms"
            case .pushes: "apns"
            case .ai, .batches: "openai"
            case .webhooks: "webhook:"
            }
        }

        fileprivate init?(path: String, isSilent: Bool) {
            let parts = path.split(separator: "/")
            switch parts.first {
            case "emails": self = isSilent ? .doubts : .mail
            case "sms": self = .notices
            case "3": self = .pushes
            case "v1": self = parts.dropFirst().first == "chat" ? .ai : .batches
            case "hook": self = .webhooks
            default: return nil
            }
        }
    }

    /// What one provider has seen since the last ``begin()``.
    struct Seen: Sendable {
        /// Requests, and what they carried: a request to Resend may have a hundred messages.
        var requests = 0
        var carried = 0
        var whileDown = 0
        var served = 0
        var firstServed: ContinuousClock.Instant?
        /// The last one that came while it was down.
        var lastRefused: ContinuousClock.Instant?
    }

    private struct State {
        var isDown = false
        var isSilent = false
        var seen: [Room: Seen] = [:]
    }

    private let server: Loopback.Server
    private let state = Mutex(State())

    init() throws {
        server = try Loopback.Server()
        server.start("recovery") { self.serve($0) }
    }

    var url: String { "http://127.0.0.1:\(server.port)" }

    func seen(_ room: Room) -> Seen { state.withLock { $0.seen[room] ?? Seen() } }

    /// Down from now on, and nothing seen yet.
    func begin(isSilent: Bool) { state.withLock { $0 = State(isDown: true, isSilent: isSilent) } }

    func comeBack() { state.withLock { $0.isDown = false } }

    func stop() { server.stop() }

    private func serve(_ client: Int32) {
        let isSilent = state.withLock { $0.isSilent }
        guard let request = Loopback.request(from: client), let room = Room(path: request.path, isSilent: isSilent)
        else { return }
        let messages =
            switch room {
            case .mail, .doubts: (try? JSONValue.read(request.body))?.items?.count ?? 1
            case .batches: request.path.hasSuffix("/files") ? 1 : 0  // the other request of the same call
            case .notices, .pushes, .ai, .webhooks: 1
            }
        let isDown = state.withLock { state in
            var seen = state.seen[room] ?? Seen()
            seen.requests += 1
            seen.carried += messages
            if state.isDown {
                seen.whileDown += 1
                seen.lastRefused = .now
            } else {
                seen.served += messages
                seen.firstServed = seen.firstServed ?? .now
            }
            state.seen[room] = seen
            return state.isDown
        }
        if isDown, isSilent { return }
        if isDown { return Loopback.answer(client, "503 Service Unavailable", "{}") }
        switch room {
        case .mail where request.path.hasSuffix("/batch"), .doubts where request.path.hasSuffix("/batch"):
            let ids = (0..<messages).map { _ in "{\"id\": \"\(Self.id())\"}" }
            Loopback.answer(client, "200 OK", "{\"data\": [\(ids.joined(separator: ", "))]}")
        case .mail, .doubts: Loopback.answer(client, "200 OK", "{\"id\": \"\(Self.id())\"}")
        case .ai: Loopback.answer(client, "200 OK", Self.answer, type: "text/event-stream")
        case .batches: Loopback.answer(client, "200 OK", "{\"id\": \"\(Self.id())\"}")
        case .notices, .pushes, .webhooks: Loopback.answer(client, "200 OK", "{}")
        }
    }

    private static func id() -> String { String(UInt64.random(in: 0 ... .max), radix: 16) }

    /// What pushes are signed with in this scenario alone; nobody checks it.
    static let pushKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgBZ6n+uHzzTvvvhS8
        ZzIaFAe5W3cbyD0/Rq93zDMK7/ehRANCAARY5nUqkg5bxKKw+Qo5QltZrHboE7Cn
        ZdgJez8M/xSDSV7CUgxPBMH40gAtnIZB/V/8sp8Uw+MBSWv2J/Cg/xwK
        -----END PRIVATE KEY-----

        """

    private static let answer: String = {
        let text = #"{"sentiment": "positive", "concern": "none"}"#
        let chunk: JSONValue = [
            "choices": [["delta": ["content": .string(text)], "finish_reason": "stop"]],
            "usage": ["prompt_tokens": 10, "completion_tokens": 5],
        ]
        return "data: \(chunk.compact)\n\ndata: [DONE]\n\n"
    }()
}
