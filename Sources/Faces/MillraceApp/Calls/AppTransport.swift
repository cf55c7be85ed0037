import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An answer that came in whole.
struct HTTPAnswer: Sendable {
    let status: Int
    /// With names in lower case.
    let headers: [String: String]
    let body: Data

    init(status: Int, headers: [String: String] = [:], body: Data = Data()) {
        (self.status, self.headers, self.body) = (status, headers, body)
    }

    init(_ response: URLResponse, _ body: Data) throws {
        guard let response = response as? HTTPURLResponse else { throw AppError(.unknown, "the answer is not HTTP") }
        self.init(status: response.statusCode, headers: Self.headers(response), body: body)
    }

    func header(_ name: String) -> String? { headers[name] }

    /// With more of its body, as far as that is wanted.
    func adding(_ bytes: Data, upTo most: Int) -> HTTPAnswer {
        HTTPAnswer(status: status, headers: headers, body: Data((body + bytes).prefix(most)))
    }

    var isSuccess: Bool { (200...299).contains(status) }

    static func headers(_ response: HTTPURLResponse) -> [String: String] {
        var all: [String: String] = [:]
        for (name, value) in response.allHeaderFields {
            if let name = name as? String, let value = value as? String { all[name.lowercased()] = value }
        }
        return all
    }
}

/// Foundation's URL loading, without cookies, caches and stored passwords.
struct AppTransport: Sendable {
    enum Body: Sendable {
        case none
        case data(Data)
        case file(URL)
    }

    let session: URLSession

    init() { session = URLSession(configuration: Self.configuration()) }

    static func configuration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCredentialStorage = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        return configuration
    }

    #if canImport(FoundationNetworking)
        func send(_ request: URLRequest, _ body: Body) async throws -> HTTPAnswer {
            let call = SessionCall()
            return try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let done: @Sendable (Data?, URLResponse?, (any Error)?) -> Void = { data, response, error in
                        continuation.resume(
                            with: Result {
                                guard let response, error == nil else { throw error ?? URLError(.unknown) }
                                return try HTTPAnswer(response, data ?? Data())
                            })
                    }
                    call.begin { [session] in
                        switch body {
                        case .none: session.dataTask(with: request, completionHandler: done)
                        case .data(let data): session.uploadTask(with: request, from: data, completionHandler: done)
                        case .file(let file): session.uploadTask(with: request, fromFile: file, completionHandler: done)
                        }
                    }
                }
            } onCancel: {
                call.cancel()
            }
        }
    #else
        func send(_ request: URLRequest, _ body: Body) async throws -> HTTPAnswer {
            let (data, response) =
                switch body {
                case .none: try await session.data(for: request)
                case .data(let data): try await session.upload(for: request, from: data)
                case .file(let file): try await session.upload(for: request, fromFile: file)
                }
            return try HTTPAnswer(response, data)
        }
    #endif
}

/// A request that is begun, cancelled and ended in this order, whatever thread asks.
///
/// On Linux a session waits for its queue meanwhile, and the queue needs a thread of the pool on which tasks run. If all of these waited, nothing
/// would go on: there each step has a thread of its own. Apple's sessions wait for nothing.
final class SessionCall: Sendable {
    private let lock = NSLock()
    nonisolated(unsafe) private var task: URLSessionTask?
    nonisolated(unsafe) private var isCancelled = false
    nonisolated(unsafe) private var isEnded = false

    func begin(_ make: @escaping @Sendable () -> URLSessionTask) {
        step {
            guard !self.isEnded else { return }
            let task = make()
            task.resume()
            if self.isCancelled { task.cancel() }
            self.task = task
        }
    }

    /// Nothing is begun in the session after this.
    func end(_ session: URLSession) {
        step {
            guard !self.isEnded else { return }
            self.isEnded = true
            session.invalidateAndCancel()
        }
    }

    func cancel() {
        step {
            self.isCancelled = true
            self.task?.cancel()
        }
    }

    private func step(_ body: @escaping @Sendable () -> Void) {
        #if canImport(FoundationNetworking)
            Thread.detachNewThread { self.lock.withLock(body) }
        #else
            lock.withLock(body)
        #endif
    }
}
