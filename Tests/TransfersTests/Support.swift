import Fakes
import Synchronization
import Transfers

/// Runs `body` beside a server that treats each connection so.
func withServer<Value>(
    _ serve: @escaping @Sendable (RawConnection) -> Void, _ body: (RawServer, String) async throws -> Value
) async throws -> Value {
    let server = try RawServer(serve)
    defer { server.stop() }
    return try await body(server, "http://127.0.0.1:\(server.port)")
}

/// Answers every request of every connection so.
func answering(_ answer: @escaping @Sendable (String, RawConnection) -> Bool) -> @Sendable (RawConnection) -> Void {
    { connection in
        while let head = connection.readHead() {
            guard answer(head, connection) else { return }
        }
    }
}

/// A request whose limits no busy machine reaches: where a limit is not what a test is about.
func patient(
    _ method: String, _ url: String, headers: HTTPHeaders = [:], body: HTTPRequest.Body = .none
) -> HTTPRequest {
    var request = HTTPRequest(method, url, headers: headers, body: body)
    request.limits.total = .seconds(300)
    request.limits.stall = .seconds(250)
    request.limits.connect = .seconds(60)
    return request
}
