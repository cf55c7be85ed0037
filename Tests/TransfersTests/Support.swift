import Fakes
import Synchronization
import Transfers

/// A value behind a lock that tasks and threads may share.
final class Locked<Value: Sendable>: Sendable {
    private let value: Mutex<Value>

    init(_ value: Value) { self.value = Mutex(value) }

    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result { value.withLock { body(&$0) } }
}

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

/// The error that `body` ends with; nil when it ends well.
func failure(_ body: () async throws -> Void) async throws -> TransferError? {
    do {
        try await body()
        return nil
    } catch let error as TransferError {
        return error
    }
}

/// Looks again and again until `condition` holds.
func soon(_ what: String, _ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(90)
    while try await !condition() {
        guard ContinuousClock.now < deadline else { throw Failed(description: "did not happen: \(what)") }
        try await Task.sleep(for: .milliseconds(5))
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
