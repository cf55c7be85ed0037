import CommandKit
import Glibc
import LoadKit
import Supervision
import Synchronization

/// A provider on loopback with scripted behaviour: well, failing, refusing, slow, or with a pace in its headers.
final class ScriptedProvider: Sendable {
    struct Script: Sendable {
        var status = 200
        var latency = Duration.milliseconds(20)
        /// Requests allowed in any second; further ones are answered with 429.
        var pace: Int?
    }

    struct Request: Sendable {
        var began: Moment
        var ended: Moment
        var status: Int
    }

    private struct State {
        var script = Script()
        var served: [Moment] = []
        var requests: [Request] = []
    }

    private let server: Loopback.Server
    private let state = Mutex(State())

    init() throws {
        server = try Loopback.Server()
        server.start("provider-call") { self.serve($0) }
    }

    var port: UInt16 { server.port }

    func script(_ change: (inout Script) -> Void) { state.withLock { change(&$0.script) } }
    var requests: [Request] { state.withLock { $0.requests } }
    func requests(since moment: Moment) -> Int { state.withLock { $0.requests.count { $0.began >= moment } } }

    func stop() { server.stop() }

    private func serve(_ client: Int32) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        guard recv(client, &buffer, buffer.count, 0) > 0 else { return }
        let began = Moment.now
        let (status, script, left) = state.withLock { state in
            guard let pace = state.script.pace else { return (state.script.status, state.script, 0) }
            state.served.removeAll { began - $0 >= .seconds(1) }
            guard state.served.count < pace else { return (429, state.script, 0) }
            state.served.append(began)
            return (state.script.status, state.script, pace - state.served.count)
        }
        if status != 429 { usleep(UInt32(script.latency / .microseconds(1))) }
        var answer = "HTTP/1.1 \(status) Scripted\r\nContent-Length: 0\r\nConnection: close\r\n"
        if let pace = script.pace {
            answer += "RateLimit-Limit: \(pace)\r\nRateLimit-Remaining: \(left)\r\nRateLimit-Reset: 1\r\n"
            if status == 429 { answer += "Retry-After: 1\r\n" }
        }
        let bytes = Array((answer + "\r\n").utf8)
        // Recorded before the answer goes out, so a client that has its answer finds the request on record.
        state.withLock { $0.requests.append(Request(began: began, ended: .now, status: status)) }
        _ = send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
}
