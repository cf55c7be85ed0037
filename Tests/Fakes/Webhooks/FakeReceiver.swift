import Synchronization

/// A target of webhooks on this machine: notes each request, and answers as its script says.
package final class FakeReceiver: Sendable {
    package struct Request: Sendable {
        package var method: String
        package var path: String
        /// Names in lower case, in their order.
        package var headers: [(name: String, value: String)]
        package var body: [UInt8]

        package subscript(name: String) -> String? { headers.first { $0.name == name }?.value }
    }

    package struct Answer: Sendable {
        package var status: Int
        package var headers: [(String, String)]
        /// The connection ends instead of an answer.
        package var isLost = false

        package init(_ status: Int, _ headers: [(String, String)] = []) {
            self.status = status
            self.headers = headers
        }

        package static var lost: Answer {
            var answer = Answer(200)
            answer.isLost = true
            return answer
        }
    }

    /// Says yes to everybody, at this rate.
    package static func consent(_ rate: String = "*") -> Answer {
        Answer(200, [("WebHook-Allowed-Origin", "*"), ("WebHook-Allowed-Rate", rate)])
    }

    private let server: RawServer
    private let seen: Notes

    private final class Notes: Sendable {
        let requests = Mutex<[Request]>([])
    }

    /// - Parameter answer: gets the request, and how many with its method came before it.
    package init(
        _ answer: @escaping @Sendable (Request, Int) -> Answer = { request, _ in
            request.method == "OPTIONS" ? FakeReceiver.consent() : Answer(204)
        }
    ) throws {
        let notes = Notes()
        seen = notes
        server = try RawServer { connection in
            while let head = connection.readHead(), let request = Self.request(head, connection) {
                let before = notes.requests.withLock { requests in
                    defer { requests.append(request) }
                    return requests.count { $0.method == request.method }
                }
                let said = answer(request, before)
                guard !said.isLost else { return }
                let fields = said.headers.map { "\($0.0): \($0.1)\r\n" }.joined()
                guard connection.answer("", status: "\(said.status) Said", headers: fields) else { return }
            }
        }
    }

    package var url: String { "http://127.0.0.1:\(server.port)/hook" }
    /// For MILLRACE_WEBHOOK_ALLOW.
    package var allowance: String { "http://127.0.0.1:\(server.port)" }
    package var requests: [Request] { seen.requests.withLock { $0 } }
    package var posts: [Request] { requests.filter { $0.method == "POST" } }

    package func stop() { server.stop() }

    private static func request(_ head: String, _ connection: RawConnection) -> Request? {
        var lines = head.split(separator: "\r\n", omittingEmptySubsequences: true)[...]
        guard let words = lines.popFirst()?.split(separator: " "), words.count == 3 else { return nil }
        let headers = lines.compactMap { line -> (name: String, value: String)? in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            return (line[..<colon].lowercased(), String(value))
        }
        let length = headers.first { $0.name == "content-length" }.flatMap { Int($0.value) } ?? 0
        guard let body = connection.read(exactly: length) else { return nil }
        return Request(method: String(words[0]), path: String(words[1]), headers: headers, body: body)
    }
}
