/// The class of an error, in the words that all rooms, the database and the command line share.
package enum ErrorClass: String, Sendable, CaseIterable, Codable {
    /// The server failed, and is likely to be well again in a moment.
    case transient
    case timeout
    /// Nothing was reached: no name, no connection, or a server that takes nothing.
    case unavailable
    /// Too fast: nothing is wrong but the pace.
    case throttled
    /// Everything that was paid for is used up.
    case quota
    case authentication
    case permission
    case notFound = "not_found"
    case conflict
    case invalid
    case tooLarge = "too_large"
    case unsupported
    /// It may have happened or not.
    case unknown
    case cancelled
    /// A mistake of ours.
    case `internal`

    package enum Severity: String, Sendable, Comparable {
        case notice, warning, error, critical

        package static func < (one: Severity, other: Severity) -> Bool { one.rank < other.rank }

        private var rank: Int {
            switch self {
            case .notice: 0
            case .warning: 1
            case .error: 2
            case .critical: 3
            }
        }
    }

    package enum Retry: String, Sendable {
        case never
        /// Later, as it is.
        case after
        /// Later, and only with the idempotency key of the first attempt: that one may have worked.
        case sameKey = "same_key"
        /// Not here; a second provider may be asked.
        case elsewhere
    }

    package var severity: Severity {
        switch self {
        case .cancelled: .notice
        case .transient, .timeout, .unavailable, .throttled, .quota, .conflict, .unknown: .warning
        case .authentication, .permission, .notFound, .invalid, .tooLarge, .unsupported, .internal: .error
        }
    }

    package var retry: Retry {
        switch self {
        case .transient, .throttled: .after
        case .timeout, .unknown: .sameKey
        case .unavailable, .quota, .authentication: .elsewhere
        case .permission, .notFound, .conflict, .invalid, .tooLarge, .unsupported, .cancelled, .internal: .never
        }
    }

    /// For the user of the app: no names, no numbers, and what to do.
    package var sentence: String {
        switch self {
        case .transient: "Something went wrong for a moment. We are trying again."
        case .timeout: "This is taking longer than usual. We are trying again."
        case .unavailable: "The service is not available right now. We will try another way, or again later."
        case .throttled: "There is a lot going on right now. This will be done shortly."
        case .quota: "The limit for this service is reached. We have been told."
        case .authentication: "We cannot use this service right now. We have been told."
        case .permission: "This is not allowed."
        case .notFound: "This does not exist, or no longer exists."
        case .conflict: "This was already changed or done. Please check how it looks now."
        case .invalid: "Something in this request is not right. Please check it."
        case .tooLarge: "This is too large."
        case .unsupported: "This kind of thing is not supported."
        case .unknown: "We do not know yet whether this worked. We are finding out."
        case .cancelled: "This was cancelled."
        case .internal: "Something went wrong on our side. We have been told."
        }
    }

    /// The corresponding error of an app's sign-in (`toAuthenticationError`).
    package var authenticationError: String {
        switch self {
        case .unavailable: "networkConnectionFailed"
        case .timeout: "networkTimeout"
        case .throttled, .quota: "rateLimitExceeded"
        case .transient, .unknown, .internal: "serverError"
        case .authentication: "invalidCredentials"
        case .permission, .notFound, .conflict, .invalid, .tooLarge, .unsupported, .cancelled: "passwordResetFailed"
        }
    }

    /// The corresponding error in the rest of an app (`toAppError`).
    package var appError: String {
        switch self {
        case .transient, .unavailable: "unavailable"
        case .timeout: "deadlineExceeded"
        case .throttled, .quota: "resourceExhausted"
        case .authentication: "unauthenticated"
        case .permission: "permissionDenied"
        case .notFound: "notFound"
        case .conflict: "alreadyExists"
        case .invalid, .tooLarge, .unsupported: "invalidInput"
        case .unknown, .cancelled, .internal: "unknown"
        }
    }

    /// What it says about the health of the provider that answered.
    package enum Bearing: Sendable {
        /// It answered as it should, even if it said no.
        case healthy
        case failing
        /// It will answer every caller like this, until somebody does something.
        case refusing
        /// Only the pace was wrong.
        case pacing
        /// It says nothing about the provider.
        case neutral
    }

    package var bearing: Bearing {
        switch self {
        case .transient, .timeout, .unavailable, .unknown: .failing
        case .quota, .authentication: .refusing
        case .throttled: .pacing
        case .permission, .notFound, .conflict, .invalid, .tooLarge, .unsupported: .healthy
        case .cancelled, .internal: .neutral
        }
    }
}
