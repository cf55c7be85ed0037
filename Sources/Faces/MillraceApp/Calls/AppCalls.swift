import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Calls of the gateway: each with the token of the sign-in, a request id, and the repeats that the rules allow.
struct AppCalls: Sendable {
    let configuration: AppConfiguration
    let tokens: TokenKeeper
    let transport: AppTransport
    let pauses: Pauses

    init(_ configuration: AppConfiguration, pauses: Pauses = Pauses()) {
        self.configuration = configuration
        tokens = TokenKeeper(configuration.tokens)
        transport = AppTransport()
        self.pauses = pauses
    }

    enum Credential: Sendable, Hashable {
        case signIn
        /// Good for the offline intake only.
        case device(String)
        /// For signed links, which say themselves what they are good for.
        case none
    }

    struct Request: Sendable {
        var method = "GET"
        var url: URL
        var headers: [String: String] = [:]
        var body = AppTransport.Body.none
        var credential = Credential.signIn
        var patience: Duration?
        var retry: RetryRules?
    }

    // MARK: doors

    /// A door that changes nothing.
    func ask<Value: Decodable>(
        _ door: String, _ arguments: [String: AppValue] = [:], as type: Value.Type = Value.self
    ) async throws -> Value {
        try await call(door, arguments.filter { $0.value != .null }, key: nil)
    }

    /// The same for a door with a parameter that must be there, also as null.
    func askAll<Value: Decodable>(
        _ door: String, _ arguments: [String: AppValue], as type: Value.Type = Value.self
    ) async throws -> Value {
        try await call(door, arguments, key: nil)
    }

    /// A door that does something. The gateway does it once, however often the request arrives.
    func act<Value: Decodable>(
        _ door: String, _ arguments: [String: AppValue] = [:], as type: Value.Type = Value.self
    ) async throws -> Value {
        try await call(door, arguments.filter { $0.value != .null }, key: UUID().uuidString.lowercased())
    }

    private func call<Value: Decodable>(
        _ door: String, _ arguments: [String: AppValue], key: String?
    ) async throws -> Value {
        var request = try post("v1/rpc/\(door)", arguments)
        if let key { request.headers["Idempotency-Key"] = key }
        return try Self.decoded(try await send(request))
    }

    func post(_ path: String, _ body: some Encodable) throws -> Request {
        var request = Request(method: "POST", url: address(path))
        request.headers["Content-Type"] = "application/json"
        request.body = .data(try AppJSON.encode(body))
        return request
    }

    func address(_ path: String, _ query: [URLQueryItem] = []) -> URL {
        let url = configuration.url.appending(path: path)
        return query.isEmpty ? url : url.appending(queryItems: query)
    }

    static func decoded<Value: Decodable>(_ answer: HTTPAnswer) throws -> Value {
        do {
            return try AppJSON.decode(Value.self, from: answer.body)
        } catch {
            throw AppError(
                .unknown, "the answer is not what was expected: \(error)", status: answer.status,
                requestID: answer.header("x-request-id"))
        }
    }

    // MARK: requests

    /// Makes the request, and makes it again by the rules. A refused token is replaced once.
    func send(_ request: Request) async throws -> HTTPAnswer {
        let name = UUID().uuidString.lowercased()
        var attempt = 1
        var rejected: String?
        while true {
            try Task.checkCancellation()
            var token: String?
            do {
                if request.credential == .signIn { token = try await signIn(insteadOf: rejected) }
                let id = attempt == 1 ? name : "\(name)-\(attempt)"
                return try await once(request, token: token, id: id)
            } catch let error as AppError {
                if let token, error.errorClass == .authentication, rejected == nil {
                    rejected = token
                    continue
                }
                let rules = request.retry ?? configuration.retry
                guard let pause = rules.pause(after: attempt, error, random: pauses.random()) else { throw error }
                attempt += 1
                try await pauses.sleep(pause)
            }
        }
    }

    private func signIn(insteadOf rejected: String?) async throws -> String {
        if let rejected { return try await tokens.token(insteadOf: rejected) }
        return try await tokens.token()
    }

    private func once(_ request: Request, token: String?, id: String) async throws -> HTTPAnswer {
        let prepared = made(request, token: token, id: id)
        let answer: HTTPAnswer
        do {
            answer = try await transport.send(prepared, request.body)
        } catch {
            throw Task.isCancelled ? CancellationError() : AppError.from(error, requestID: id)
        }
        guard answer.isSuccess else { throw AppError(answer, requestID: id) }
        return answer
    }

    func made(_ request: Request, token: String?, id: String) -> URLRequest {
        var made = URLRequest(url: request.url)
        made.httpMethod = request.method
        made.timeoutInterval = (request.patience ?? configuration.patience).inSeconds
        made.setValue(configuration.userAgent, forHTTPHeaderField: "User-Agent")
        made.setValue(id, forHTTPHeaderField: "X-Request-Id")
        for (name, value) in request.headers { made.setValue(value, forHTTPHeaderField: name) }
        // The gateway puts right what a clock that is wrong has said.
        if request.credential != .none {
            made.setValue(InstantCoding.text(pauses.now()), forHTTPHeaderField: "Client-Time")
        }
        switch request.credential {
        case .signIn: if let token { made.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        case .device(let token): made.setValue("Device \(token)", forHTTPHeaderField: "Authorization")
        case .none: break
        }
        return made
    }
}

/// Waiting, chance and the phone's clock, which tests give themselves.
struct Pauses: Sendable {
    var now: @Sendable () -> Date = { Date() }
    var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    var random: @Sendable () -> Double = { Double.random(in: 0..<1) }
}

extension Duration {
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
