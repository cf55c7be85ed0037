import FoundationEssentials

/// An answer that is an error: its class is a word of the contract, the status follows from it.
package struct ErrorAnswer: Error, Sendable, Equatable {
    package enum Class: String, Sendable, CaseIterable {
        case invalid, authentication, permission, conflict, unsupported, throttled, unavailable, timeout, `internal`
        case notFound = "not_found"
        case tooLarge = "too_large"

        var status: Int {
            switch self {
            case .invalid: 400
            case .authentication: 401
            case .permission: 403
            case .notFound: 404
            case .conflict: 409
            case .tooLarge: 413
            case .unsupported: 415
            case .throttled: 429
            case .internal: 500
            case .unavailable: 503
            case .timeout: 408
            }
        }
    }

    package var `class`: Class
    package var status: Int
    package var message: String
    package var field: String?
    package var hint: String?
    package var headers: [Header] = []

    package init(
        _ class: Class, _ message: String, field: String? = nil, hint: String? = nil, status: Int? = nil,
        headers: [Header] = []
    ) {
        self.class = `class`
        self.status = status ?? `class`.status
        self.message = message
        self.field = field
        self.hint = hint
        self.headers = headers
    }

    private struct Body: Encodable {
        let error: String
        let message: String
        let field: String?
        let hint: String?
    }

    package var response: Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let body = Body(error: `class`.rawValue, message: message, field: field, hint: hint)
        let bytes = (try? encoder.encode(body)).map { Array($0) } ?? Array("{}".utf8)  // four texts always encode
        return Response(
            status: status, headers: [Header("Content-Type", "application/json")] + headers,
            body: .bytes(bytes + [UInt8(ascii: "\n")]))
    }
}
