public import Foundation

/// Why a call did not succeed, in the words of the apps' papers.
public struct AppError: Error, Sendable, Hashable {
    /// What an app does about it.
    public enum Kind: String, Sendable, CaseIterable {
        /// Nobody is signed in, or the sign-in is over.
        case unauthenticated
        /// The person who is signed in has no right to it.
        case permissionDenied
        /// A quota is used up (see `quota`), or there were too many calls (see `retryAfter`).
        case resourceExhausted
        /// There is no such thing, or it is not there for this person.
        case notFound
        /// It was done already, in another way, or changed meanwhile.
        case alreadyExists
        /// The answer did not come in time. What was asked may still happen.
        case deadlineExceeded
        /// The gateway was not reached, or takes nothing at the moment.
        case unavailable
        /// Nobody knows whether it worked. A repeat with the same id or key is safe.
        case unknown
        /// Something in the call is malformed, too large or of a kind that is not supported.
        case invalidInput
    }

    /// The server's class of the error, finer than the kind. `deploy/guides/errors.md` describes each.
    public enum ErrorClass: String, Sendable, CaseIterable {
        /// Something failed for a moment, such as a connection of the server's.
        case transient
        /// There was no answer in time.
        case timeout
        /// Nothing was reached, or what was reached takes nothing now.
        case unavailable
        /// There were too many calls; a later one is taken.
        case throttled
        /// A quota is used up.
        case quota
        /// The sign-in is missing, over or not accepted.
        case authentication
        /// The person has no right to it.
        case permission
        /// The call is malformed, or names what cannot be used.
        case invalid
        /// A text or a file is too large.
        case too_large
        /// A file or a value is of a kind that is not taken.
        case unsupported
        /// It does not exist, or no longer.
        case not_found
        /// It was done already, or has changed meanwhile.
        case conflict
        /// Nobody knows yet whether it worked.
        case unknown
        /// It was cancelled.
        case cancelled
        /// The server made a mistake.
        case `internal`
    }

    /// What the app does about it.
    public let kind: Kind
    /// What went wrong, more exactly.
    public let errorClass: ErrorClass
    /// For developers and logs.
    public let message: String
    /// For the app's user.
    public let userMessage: String
    /// The parameter that was wrong.
    public let field: String?
    /// What to do about it, for developers.
    public let hint: String?
    /// What is used up.
    public let quota: QuotaError?
    /// The status of the answer; nil when there was none.
    public let status: Int?
    /// Names the call in the gateway's log.
    public let requestID: String?
    /// The gateway asks for no repeat before this time has passed.
    public let retryAfter: Duration?
    /// In a batch: which call it was, counted from 0.
    public let index: Int?
    /// The gateway itself said so, with a class. Otherwise something on the way answered in its place, or nobody did: then the same call can succeed later.
    public internal(set) var isFromGateway = false
    /// No request was made: the gateway has not answered before, and is left alone until `retryAfter` is over.
    public internal(set) var isBarred = false

    /// From its parts.
    public init(
        _ errorClass: ErrorClass, _ message: String, userMessage: String? = nil, field: String? = nil,
        hint: String? = nil, quota: QuotaError? = nil, status: Int? = nil, requestID: String? = nil,
        retryAfter: Duration? = nil, index: Int? = nil, isBarred: Bool = false
    ) {
        self.isBarred = isBarred
        kind = errorClass.kind
        self.errorClass = errorClass
        self.message = message
        self.userMessage = userMessage ?? errorClass.sentence
        self.field = field
        self.hint = hint
        self.quota = quota
        self.status = status
        self.requestID = requestID
        self.retryAfter = retryAfter
        self.index = index
    }

    /// Whether the same call, with the same id or key, can succeed later.
    public var mayRetry: Bool {
        switch errorClass {
        case .transient, .timeout, .unavailable, .unknown: true
        case .throttled, .quota, .authentication, .permission, .invalid, .too_large, .unsupported, .not_found,
            .conflict, .cancelled, .internal:
            false
        }
    }
}

/// What is used up, how much of it, and when there is room again.
public struct QuotaError: Error, Sendable, Hashable {
    /// How much is allowed.
    public let limit: Int
    /// How much is used.
    public let used: Int
    /// nil: time alone makes no room; something has to be removed.
    public let resetDate: Date?

    /// From its parts.
    public init(limit: Int, used: Int, resetDate: Date?) {
        self.limit = limit
        self.used = used
        self.resetDate = resetDate
    }
}

extension AppError: LocalizedError, CustomStringConvertible {
    /// The sentence for the app's user.
    public var errorDescription: String? { userMessage }

    /// For logs; it holds no token.
    public var description: String {
        var text = "\(errorClass.rawValue): \(message)"
        if let field { text += " (\(field))" }
        if let hint { text += ". \(hint)" }
        if let requestID { text += " [request \(requestID)]" }
        return text
    }
}

extension AppError.ErrorClass {
    /// The table of `deploy/guides/errors.md`.
    public var kind: AppError.Kind {
        switch self {
        case .transient, .unavailable: .unavailable
        case .timeout: .deadlineExceeded
        case .throttled, .quota: .resourceExhausted
        case .authentication: .unauthenticated
        case .permission: .permissionDenied
        case .not_found: .notFound
        case .conflict: .alreadyExists
        case .invalid, .too_large, .unsupported: .invalidInput
        case .unknown, .cancelled, .internal: .unknown
        }
    }

    /// What the app's user is told where the gateway said nothing itself.
    var sentence: String {
        switch self {
        case .transient: "Something went wrong for a moment. Please try again."
        case .timeout: "This is taking longer than usual. Please try again."
        case .unavailable: "The service cannot be reached right now. Please try again later."
        case .throttled: "There is a lot going on right now. Please try again shortly."
        case .quota: "The limit for this service is reached."
        case .authentication: "Please sign in again."
        case .permission: "This is not allowed."
        case .not_found: "This does not exist, or no longer exists."
        case .conflict: "This was already changed or done. Please check how it looks now."
        case .invalid: "Something in this request is not right. Please check it."
        case .too_large: "This is too large."
        case .unsupported: "This kind of thing is not supported."
        case .unknown: "We do not know yet whether this worked."
        case .cancelled: "This was cancelled."
        case .internal: "Something went wrong on our side."
        }
    }

    /// For an answer that says no class: of a proxy, a hotel's network, or a server in the gateway's place. Whatever it says, it says nothing of the
    /// call, which has not reached the gateway or may have been carried out there.
    init(status: Int) {
        self =
            switch status {
            case 429: .throttled
            case 408, 504: .timeout
            case 400..<500, 502, 503: .unavailable
            default: .unknown
            }
    }
}

extension AppError {
    /// From an answer that is no success.
    init(_ answer: HTTPAnswer, requestID: String) {
        let told = try? AppJSON.decode(Told.self, from: answer.body)
        let ours = told?.class.flatMap(ErrorClass.init(rawValue:))
        let ofLink = told?.message == nil ? nil : told?.error.flatMap(ErrorClass.init(rawValue:))
        self.init(
            ours ?? ofLink ?? ErrorClass(status: answer.status),
            told?.detail ?? told?.message ?? told?.title ?? "the answer has the status \(answer.status)",
            userMessage: told?.userMessage, field: told?.field, hint: told?.hint,
            quota: told.flatMap { told in
                guard let limit = told.limit, let used = told.used else { return nil }
                return QuotaError(limit: limit, used: used, resetDate: told.resetDate)
            },
            status: answer.status, requestID: told?.requestId ?? answer.header("x-request-id") ?? requestID,
            retryAfter: answer.header("retry-after").flatMap { Double($0) }
                .flatMap { $0 >= 0 && $0 < 1e9 ? .milliseconds(Int64($0 * 1000)) : nil },
            index: told?.index)
        isFromGateway = ours != nil
    }

    /// From what ended a request without an answer. A task that was cancelled stays so.
    static func from(_ error: any Error, requestID: String? = nil) -> any Error {
        switch error {
        case is AppError, is CancellationError: return error
        case let error as URLError:
            if error.code == .cancelled { return CancellationError() }
            return AppError(
                ErrorClass(error.code), "the gateway did not answer: \(error.localizedDescription)",
                requestID: requestID)
        default:
            return AppError(.unknown, "\(error)", requestID: requestID)
        }
    }

    /// A problem as the gateway writes it; the routes of signed links call two of its members otherwise.
    private struct Told: Decodable {
        var `class`: String?
        var error: String?
        var title: String?
        var detail: String?
        var message: String?
        var field: String?
        var hint: String?
        var userMessage: String?
        var limit: Int?
        var used: Int?
        var resetDate: Date?
        var requestId: String?
        var index: Int?
    }
}

extension AppError.ErrorClass {
    init(_ code: URLError.Code) {
        self =
            switch code {
            case .timedOut: .timeout
            case .cannotFindHost, .cannotConnectToHost, .dnsLookupFailed, .notConnectedToInternet,
                .internationalRoamingOff, .callIsActive, .dataNotAllowed, .secureConnectionFailed,
                .serverCertificateUntrusted, .serverCertificateHasBadDate, .serverCertificateNotYetValid,
                .serverCertificateHasUnknownRoot:
                .unavailable
            // The request may have left: whether it worked, nobody knows.
            default: .unknown
            }
    }
}
