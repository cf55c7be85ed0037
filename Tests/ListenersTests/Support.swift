import Glibc
import Listeners
import Telemetry
import TestSupport
import Testing

/// A listener on a port of its own, for as long as `body` runs.
@discardableResult
func withListener<Value: Sendable>(
    _ routes: [Route], token: String? = nil, log: Log = .silent, change: (inout Listener.Options) -> Void = { _ in },
    _ body: @Sendable (Listener) async throws -> Value
) async throws -> Value {
    var options = Listener.Options(
        address: try #require(ListenAddress("127.0.0.1:0")), token: token.map { AccessToken($0) })
    options.grace = .seconds(1)
    // A test that has no turn for long is no slow client.
    options.headPatience = .seconds(300)
    options.stallPatience = .seconds(300)
    change(&options)
    let listener = try Listener(options, routes: routes, log: log)
    async let running: Void = listener.run()
    let outcome: Result<Value, any Error>
    do {
        outcome = .success(try await body(listener))
    } catch {
        outcome = .failure(error)
    }
    listener.stop()
    try await running
    return try outcome.get()
}

/// A plain socket, for requests that a correct client would not send.
final class Wire: Sendable {
    struct Refused: Error {}

    let descriptor: Int32

    init(to port: UInt16) throws {
        descriptor = try LocalSocket.connect(to: port)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    }

    deinit {
        close(descriptor)
    }

    /// What could be sent at once; -1 when the other side has closed.
    @discardableResult
    func send(_ text: String) -> Int {
        let bytes = Array(text.utf8)
        return Glibc.send(descriptor, bytes, bytes.count, Int32(truncatingIfNeeded: MSG_NOSIGNAL))
    }

    /// What has come up to now; nil at the end.
    func read() -> String? {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        if count > 0 { return String(decoding: bytes.prefix(count), as: UTF8.self) }
        return count < 0 && errno == EAGAIN ? "" : nil
    }

    /// All that comes until the other side closes.
    func readToEnd() async throws -> String {
        var text = ""
        try await eventually("the other side closes; it said \(text)") {
            guard let more = read() else { return true }
            text += more
            return false
        }
        return text
    }

    func read(until part: String) async throws -> String {
        var text = ""
        try await eventually("\(part) comes") {
            guard let more = read() else { throw Refused() }
            text += more
            return text.contains(part)
        }
        return text
    }
}

/// Sends one request as it is, and gives all that came back.
func ask(_ listener: Listener, _ request: String) async throws -> String {
    let wire = try Wire(to: listener.address.port)
    wire.send(request)
    return try await wire.readToEnd()
}

func get(_ listener: Listener, _ path: String, _ headers: String = "", method: String = "GET") async throws -> String {
    try await ask(listener, "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(headers)\r\n")
}
