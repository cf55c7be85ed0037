package import Faults
import JSON
package import Listeners

/// An error as an app reads it: `application/problem+json` (RFC 9457) with the class, the field, the hint, and the sentence for the user.
package struct GatewayProblem: Error, Sendable, Equatable {
    package var `class`: ErrorClass
    package var status: Int
    package var message: String
    package var field: String?
    package var hint: String?
    /// Of a quota, as JSON: how much is allowed, how much is used, and when there is room again.
    package var limit: String?
    package var used: String?
    package var resetDate: String?
    /// Which call of a batch failed.
    package var index: Int?
    /// Seconds after which trying again can help.
    package var retryAfter: Int?
    package var headers: [Header] = []
    /// For the log alone.
    package var cause: String?

    package init(
        _ class: ErrorClass, _ message: String, field: String? = nil, hint: String? = nil, status: Int? = nil,
        retryAfter: Int? = nil
    ) {
        self.class = `class`
        self.status = status ?? `class`.httpStatus
        self.message = message
        self.field = field
        self.hint = hint
        self.retryAfter = retryAfter ?? `class`.pause
        if `class` == .authentication {
            headers.append(Header("WWW-Authenticate", "Bearer error=\"invalid_token\""))
        }
    }

    /// The members in the order in which they are answered; absent ones are left out.
    func members(requestID: String) -> [JSONValue.Member] {
        var members: [JSONValue.Member] = []
        func add(_ key: String, _ value: JSONValue?) {
            if let value { members.append(JSONValue.Member(key: key, value: value)) }
        }
        add("type", .string("/v1/errors#\(`class`.rawValue)"))
        add("title", .string(`class`.title))
        add("status", .int(status))
        add("class", .string(`class`.rawValue))
        add("detail", .string(message))
        add("field", field.map(JSONValue.string))
        add("hint", hint.map(JSONValue.string))
        add("user_message", .string(`class`.sentence))
        add("limit", limit.map(JSONValue.raw))
        add("used", used.map(JSONValue.raw))
        add("reset_date", resetDate.map(JSONValue.raw))
        add("index", index.map(JSONValue.int))
        add("request_id", .string(requestID))
        return members
    }

    package func response(requestID: String) -> Response {
        var all = [Header("Content-Type", "application/problem+json")] + headers
        if let retryAfter { all.append(Header("Retry-After", String(retryAfter))) }
        let body = JSONValue.object(members(requestID: requestID)).compact + "\n"
        return Response(status: status, headers: all, body: .bytes(Array(body.utf8)))
    }
}

extension ErrorClass {
    package var httpStatus: Int {
        switch self {
        case .invalid: 400
        case .authentication: 401
        case .permission: 403
        case .notFound: 404
        case .conflict, .cancelled: 409
        case .tooLarge: 413
        case .unsupported: 415
        case .throttled, .quota: 429
        case .internal: 500
        case .transient, .unavailable, .unknown: 503
        case .timeout: 504
        }
    }

    /// A few words for a person who reads a log.
    package var title: String {
        switch self {
        case .invalid: "The request is not valid"
        case .authentication: "The token is not accepted"
        case .permission: "This is not allowed"
        case .notFound: "There is no such thing"
        case .conflict: "This has changed in the meantime"
        case .cancelled: "This was cancelled"
        case .tooLarge: "This is too large"
        case .unsupported: "This kind is not supported"
        case .throttled: "Too many requests"
        case .quota: "The limit is reached"
        case .internal: "The server failed"
        case .transient: "This failed for a moment"
        case .unavailable: "The service is not available"
        case .unknown: "Nobody knows whether this worked"
        case .timeout: "This took too long"
        }
    }

    /// Seconds to wait before the next try, where nothing better is known.
    fileprivate var pause: Int? {
        switch self {
        case .transient, .unknown: 1
        case .unavailable: 2
        case .throttled: 1
        case .timeout, .invalid, .authentication, .permission, .notFound, .conflict, .cancelled, .tooLarge,
            .unsupported,
            .quota, .internal:
            nil
        }
    }
}
