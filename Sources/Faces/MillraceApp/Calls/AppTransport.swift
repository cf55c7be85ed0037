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

    func send(_ request: URLRequest, _ body: Body) async throws -> HTTPAnswer {
        let (data, response) =
            switch body {
            case .none: try await session.data(for: request)
            case .data(let data): try await session.upload(for: request, from: data)
            case .file(let file): try await session.upload(for: request, fromFile: file)
            }
        return try HTTPAnswer(response, data)
    }
}
