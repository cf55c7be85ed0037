import Glibc
import JSON
import Listeners
import Postgres
import Synchronization
import Telemetry

@testable import Gateway

extension Target {
    // MARK: bodies

    /// A parameter of each type.
    private static let door: GatewayDoor? = {
        let types = [
            "text", "boolean", "smallint", "integer", "bigint", "numeric", "real", "double precision", "uuid", "date",
            "timestamp with time zone", "time without time zone", "interval", "bytea", "jsonb", "text[]", "integer[]",
            "uuid[]", "interval[]",
        ]
        let arguments = types.enumerated().map { place, type -> JSONValue in
            ["name": .string("a\(place)"), "type": .string(type), "required": .bool(false)]
        }
        return GatewayDoor(
            name: "fuzzed", arguments: .array(arguments), result: ["kind": "void"], comment: nil)
    }()

    /// A body of a call, or of a batch, as far as the database.
    func body(_ bytes: [UInt8]) -> String? {
        guard let door = Self.door else { return "the function of this test cannot be made" }
        do {
            let members = try GatewayBody.object(bytes)
            guard Set(members.map(\.key)).count == members.count else { return "a key stands twice" }
            let again = try GatewayBody.object(Array(JSONValue.object(members).compact.utf8))
            guard again == members else { return "another body comes back" }
            _ = try GatewayValues.statement(door, members)
        } catch {
            let response = GatewayProblem(error).response(requestID: "fuzz")
            guard (400...499).contains(response.status) else { return "answered \(response.status): \(error)" }
        }
        return nil
    }

    // MARK: requests

    /// Raw bytes to a real listener with paths such as the gateway's, in pieces as the first byte says. What comes back is whole answers.
    func request(_ bytes: [UInt8]) -> String? {
        guard let size = bytes.first.map({ Int($0) + 1 }) else { return nil }
        guard let server = FuzzedListener.shared else { return "no listener could be started" }
        guard let (answer, isWhole) = server.exchange(Array(bytes.dropFirst()), pieces: size) else {
            return "nobody listens: \(String(cString: strerror(errno)))"
        }
        var rest = answer[...]
        while !rest.isEmpty {
            guard rest.starts(with: Array("HTTP/1.".utf8)), let end = rest.firstRange(of: [13, 10, 13, 10]) else {
                guard isWhole else { return nil }
                return "an answer without a head: \(String(decoding: rest.prefix(200), as: UTF8.self))"
            }
            let head = String(decoding: rest[..<end.lowerBound], as: UTF8.self)
            let status = head.split(separator: " ", maxSplits: 2).dropFirst().first.flatMap { Int($0) } ?? 0
            guard (100...599).contains(status), status != 500 else { return "answered \(head)" }
            if head.contains("\n") && head.contains("\nX-Injected") {
                return "a header of the request's stands in the answer"
            }
            let length = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
                .flatMap { Int($0.dropFirst(15).drop { $0 == " " }) }
            rest = rest[end.upperBound...]
            // The answer to HEAD has a length and no body, and the last on its connection may be cut.
            guard let length, rest.count >= length, !rest.starts(with: Array("HTTP/1.".utf8)) else { continue }
            rest = rest.dropFirst(length)
        }
        return nil
    }
}

/// A listener in this process, as long as it runs.
private final class FuzzedListener: Sendable {
    static let shared = FuzzedListener()

    private let port: UInt16
    private let running: Task<Void, any Error>

    private init?() {
        guard let address = ListenAddress("127.0.0.1:0") else { return nil }
        var options = Listener.Options(address: address)
        options.isGuarded = true
        guard let listener = try? Listener(options, routes: Self.routes, log: Log(threshold: .error) { _ in }) else {
            return nil
        }
        port = listener.address.port
        running = Task { try await listener.run() }
    }

    /// The gateway's own readers of what clients send, without a database behind.
    private static let routes: [Route] = [
        Route(.post, "/v1/rpc/{function}", access: .verified, limit: 1 << 16) { request in
            var problem: GatewayProblem?
            do {
                _ = try GatewayBody.object(try await GatewayBody.read(request))
                _ = try IdempotencyKey.of(request)
            } catch {
                problem = GatewayProblem(error)
            }
            let id = RequestID.of(request.headers)
            var response = problem?.response(requestID: id) ?? Response(status: 200, body: .bytes(Array("null".utf8)))
            response.headers.append(Header("X-Request-Id", id))
            response.headers += CrossOrigin(origins: ["https://app.example.com"]).headers(
                for: request.headers["Origin"])
            return response
        },
        Route(.get, "/v1/me/events", access: .verified) { request in
            _ = try StreamQuery(request)
            _ = ClientAddress(proxies: []).of(request)
            return Response(status: 200, body: .bytes(Array("null".utf8)))
        },
        Route(.get, "/v1/documents/{id}/file", access: .verified) { _ in Response(status: 204) },
    ]

    /// All that comes until the other side closes, or says nothing for a moment: it waits for the rest of a request.
    func exchange(_ bytes: [UInt8], pieces: Int) -> (answer: [UInt8], isWhole: Bool)? {
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(client) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { return nil }
        var wait = timeval(tv_sec: 0, tv_usec: 300_000)
        var one: Int32 = 1
        setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(client, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            guard send(client, piece, piece.count, Int32(MSG_NOSIGNAL)) == piece.count else { break }
            rest = rest.dropFirst(pieces)
        }
        shutdown(client, Int32(SHUT_WR))
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = recv(client, &buffer, buffer.count, 0)
            if count > 0 {
                answer += buffer[..<count]
            } else if count == 0 || errno == ECONNRESET {
                return (answer, true)
            } else if errno != EINTR {
                return (answer, false)
            }
        }
    }
}
