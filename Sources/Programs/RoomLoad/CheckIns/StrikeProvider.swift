import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import Synchronization

/// An honest provider of texts and calls on loopback: it keeps what it has taken, whether or not its answer arrives, and it takes the same
/// notice twice if it gets it twice. The harness judges by its ledger.
final class StrikeProvider: Sendable {
    struct Entry: Sendable {
        /// The sender's id: that of the notice.
        var id: String
        var channel: String
        var to: String
        var text: String
        /// The worker that sent it, known by the address that it was given.
        var worker: String
        /// Seconds since 1970.
        var at: Double
    }

    private struct State {
        var entries: [Entry] = []
        var holds = false
        var held: String?
    }

    private struct Message: Decodable {
        var to: String
        var text: String
        var id: String
        var channel: String
    }

    private let server: Loopback.Server
    private let state = Mutex(State())

    init() throws {
        server = try Loopback.Server()
        server.start("strike-call") { self.serve($0) }
    }

    /// The address for a worker of this name.
    func url(for worker: String) -> String { "http://127.0.0.1:\(server.port)/\(worker)/{{channel}}" }

    var entries: [Entry] { state.withLock { $0.entries } }
    var count: Int { state.withLock { $0.entries.count } }

    /// From the next one on answers are kept back, until `release`.
    func hold() { state.withLock { ($0.holds, $0.held) = (true, nil) } }

    /// Whose answer is kept back.
    var held: String? { state.withLock { $0.held } }

    func release() { state.withLock { $0.holds = false } }

    func stop() {
        state.withLock { $0.holds = false }
        server.stop()
    }

    private func serve(_ client: Int32) {
        var patience = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        guard let (path, body) = Loopback.request(from: client) else { return }
        guard let message = try? JSONDecoder().decode(Message.self, from: Data(body)) else {
            return Loopback.answer(client, "400 Bad Request", "{}")
        }
        let worker = path.split(separator: "/").first.map(String.init) ?? ""
        let entry = Entry(
            id: message.id, channel: message.channel, to: message.to, text: message.text, worker: worker,
            at: MachineClock.now())
        state.withLock { state in
            state.entries.append(entry)
            if state.holds, state.held == nil { state.held = worker }
        }
        while state.withLock({ $0.holds }) { usleep(2000) }
        Loopback.answer(client, "200 OK", #"{"id": "\#(message.id)"}"#)
    }
}
