import Glibc
import Synchronization

/// A request, as a fake provider records it.
package struct PushRequest: Sendable {
    package var method: String
    package var path: String
    package var headers: [String: String]
    package var body: String

    package subscript(name: String) -> String? { headers[name] }
}

package struct PushAnswer: Sendable {
    package enum Reaction: Sendable {
        case answer
        /// Everything has arrived, and the connection breaks.
        case lose
        /// Nothing is said for as long as the other side waits.
        case keepSilent
    }

    package var status = 200
    package var body = ""
    package var headers: [String: String] = [:]
    package var reaction = Reaction.answer

    package init(
        _ status: Int = 200, _ body: String = "", headers: [String: String] = [:], reaction: Reaction = .answer
    ) {
        self.status = status
        self.body = body
        self.headers = headers
        self.reaction = reaction
    }
}

/// An HTTP/1.1 server that answers as it is told; requests of all connections are kept.
package final class FakePush: Sendable {
    package typealias Script = @Sendable (PushRequest, Int) -> PushAnswer

    private struct State {
        var requests: [PushRequest] = []
        var script: Script
    }

    private let state: Mutex<State>
    private let server = Mutex<RawServer?>(nil)
    package let port: Int

    package init(_ script: @escaping Script = { _, _ in PushAnswer() }) throws {
        state = Mutex(State(script: script))
        let box = Box()
        let server = try RawServer { box.fake?.serve($0) }
        port = server.port
        box.set(self)
        self.server.withLock { $0 = server }
    }

    /// The server begins before there is a fake to serve for it.
    private final class Box: Sendable {
        private let kept = Mutex<FakePush?>(nil)
        var fake: FakePush? { kept.withLock { $0 } }
        func set(_ fake: FakePush) { kept.withLock { $0 = fake } }
    }

    package var url: String { "http://127.0.0.1:\(port)" }
    package var requests: [PushRequest] { state.withLock { $0.requests } }

    package func change(_ script: @escaping Script) { state.withLock { $0.script = script } }
    package func forget() { state.withLock { $0.requests = [] } }
    package func stop() { server.withLock { $0 }?.stop() }

    private func serve(_ connection: RawConnection) {
        while let head = connection.readHead() {
            guard let request = Self.read(head) else { return }
            guard let body = connection.read(exactly: Int(request["content-length"] ?? "0") ?? 0) else { return }
            var whole = request
            whole.body = String(decoding: body, as: UTF8.self)
            let (script, number) = state.withLock { state in
                state.requests.append(whole)
                return (state.script, state.requests.count)
            }
            let answer = script(whole, number)
            switch answer.reaction {
            case .answer:
                let headers = answer.headers.map { "\($0.key): \($0.value)\r\n" }.joined()
                connection.answer(answer.body, status: "\(answer.status) Told", headers: headers)
            case .lose: return connection.reset()
            case .keepSilent: return connection.waitForEnd()
            }
        }
    }

    private static func read(_ head: String) -> PushRequest? {
        var lines = head.split(separator: "\r\n")[...]
        guard let words = lines.popFirst()?.split(separator: " "), words.count == 3 else { return nil }
        var headers: [String: String] = [:]
        for line in lines {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = String(
                line[line.index(after: colon)...].drop { $0 == " " })
        }
        return PushRequest(method: String(words[0]), path: String(words[1]), headers: headers, body: "")
    }
}
