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
    let breaker: CircuitBreaker

    init(_ configuration: AppConfiguration, pauses: Pauses = Pauses()) {
        self.configuration = configuration
        tokens = TokenKeeper(configuration.tokens)
        transport = AppTransport()
        self.pauses = pauses
        breaker = CircuitBreaker(configuration.breaker, now: pauses.instant)
    }

    enum Credential: Sendable, Hashable {
        case signIn
        /// Good for the offline intake only.
        case device(String)
        /// For signed links, which say themselves what they are good for.
        case none
    }

    struct Request: Sendable {
        /// The function that it calls, for those who measure.
        var name: String
        /// Somebody may be in danger: it is made whatever the breaker says.
        var isUrgent = false
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
        try await askAll(door, arguments.filter { $0.value != .null })
    }

    /// The same for a door with a parameter that must be there, also as null.
    func askAll<Value: Decodable>(
        _ door: String, _ arguments: [String: AppValue], as type: Value.Type = Value.self
    ) async throws -> Value {
        try Self.decoded(try await call(door, arguments, once: false))
    }

    /// A door that does something. The gateway does it once, however often the request arrives.
    func act<Value: Decodable>(
        _ door: String, _ arguments: [String: AppValue] = [:], as type: Value.Type = Value.self
    ) async throws -> Value {
        try Self.decoded(try await call(door, arguments.filter { $0.value != .null }, once: true))
    }

    /// The arguments as they are. Where something is done once, a repeat of the request has the key of the first.
    func call(_ door: String, _ arguments: [String: AppValue], once: Bool) async throws -> HTTPAnswer {
        var request = try post("v1/rpc/\(door)", arguments, name: door)
        request.isUrgent = QueuedOperation.isUrgent(door)
        if once { request.headers["Idempotency-Key"] = UUID().uuidString.lowercased() }
        return try await send(request)
    }

    func post(_ path: String, _ body: some Encodable, name: String) throws -> Request {
        var request = Request(name: name, method: "POST", url: address(path))
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

    /// Makes the request, and tells the observer how it went.
    func send(_ request: Request) async throws -> HTTPAnswer {
        var attempts = 0
        guard let observer = configuration.observer else { return try await send(request, &attempts) }
        let began = pauses.instant()
        func tell(_ outcome: AppCallReport.Outcome) {
            let duration = began.duration(to: pauses.instant())
            observer(AppCallReport(name: request.name, duration: duration, attempts: attempts, outcome: outcome))
        }
        do {
            let answer = try await send(request, &attempts)
            tell(.succeeded)
            return answer
        } catch {
            tell((error as? AppError).map { .failed($0) } ?? .cancelled)
            throw error
        }
    }

    /// Makes it, and makes it again by the rules. A refused token is replaced once.
    private func send(_ request: Request, _ attempts: inout Int) async throws -> HTTPAnswer {
        let name = UUID().uuidString.lowercased()
        var attempt = 1
        var rejected: String?
        while true {
            try Task.checkCancellation()
            var token: String?
            do {
                if request.credential == .signIn { token = try await signIn(insteadOf: rejected) }
                let id = attempt == 1 ? name : "\(name)-\(attempt)"
                return try await once(request, token: token, id: id, &attempts)
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

    private func once(
        _ request: Request, token: String?, id: String, _ attempts: inout Int
    ) async throws -> HTTPAnswer {
        // A signed link is another server's.
        let pass = request.credential == .none ? nil : try breaker.begin(isUrgent: request.isUrgent)
        attempts += 1
        do {
            let answer = try await transport.send(made(request, token: token, id: id), request.body)
            guard answer.isSuccess else { throw AppError(answer, requestID: id) }
            if let pass { breaker.end(pass, .answered) }
            return answer
        } catch {
            if let pass { breaker.end(pass, Task.isCancelled ? .nothing : BreakerMachine.Word(error)) }
            throw Task.isCancelled ? CancellationError() : AppError.from(error, requestID: id)
        }
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
    var instant: @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    var random: @Sendable () -> Double = { Double.random(in: 0..<1) }
}

extension Duration {
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
