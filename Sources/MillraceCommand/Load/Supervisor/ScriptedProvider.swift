import Glibc
import Supervision
import Synchronization
import Threads

/// A provider on loopback that does as it is told: well, failing, refusing, slow, or with a pace that its headers tell.
final class ScriptedProvider: Sendable {
    struct Script: Sendable {
        var status = 200
        var latency = Duration.milliseconds(20)
        /// So many in any second; more are answered with 429.
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
        var stopping = false
    }

    let port: UInt16
    private let listener: Int32
    private let state = Mutex(State())

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, length) == 0 && listen(listener, 512) == 0
                    && getsockname(listener, pointer, &length) == 0
            }
        }
        guard listener >= 0, bound else { throw Failure("the scripted provider gets no port on loopback") }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        Thread.start(name: "provider") { self.accept() }
    }

    func script(_ change: (inout Script) -> Void) { state.withLock { change(&$0.script) } }
    var requests: [Request] { state.withLock { $0.requests } }
    func requests(since moment: Moment) -> Int { state.withLock { $0.requests.count { $0.began >= moment } } }

    func stop() {
        state.withLock { $0.stopping = true }
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            if client < 0 {
                if state.withLock({ $0.stopping }) { return }
                usleep(1000)
                continue
            }
            Thread.start(name: "provider-call") { self.serve(client) }
        }
    }

    private func serve(_ client: Int32) {
        defer { close(client) }
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
        // Before the answer: whoever has it finds it on record.
        state.withLock { $0.requests.append(Request(began: began, ended: .now, status: status)) }
        _ = send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
}
