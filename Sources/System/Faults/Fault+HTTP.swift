extension ErrorClass {
    /// From an HTTP status and the provider's name of the error, if it gives one. nil: the status is no error.
    package init?(http status: Int, name: String? = nil) {
        if let name, let named = Self.providerNames[name], !(200...299).contains(status) {
            self = named
            return
        }
        switch status {
        case 200...299, 304: return nil
        case 401, 407: self = .authentication
        case 402: self = .quota
        case 403, 451: self = .permission
        case 404, 410: self = .notFound
        case 408: self = .timeout
        case 409, 412, 423: self = .conflict
        case 413, 414, 431: self = .tooLarge
        case 405, 406, 415, 501, 505: self = .unsupported
        case 421, 425: self = .transient
        case 429: self = .throttled
        case 500: self = .transient
        case 502: self = .transient  // it may have got through: never a reason to ask somebody else
        case 503: self = .unavailable
        case 504, 524: self = .timeout
        case 507: self = .quota
        case 400...499: self = .invalid
        case 500...599: self = .transient
        default: self = .unsupported
        }
    }

    /// Providers' names of errors, where the status alone would mislead.
    package static let providerNames: [String: ErrorClass] = [
        // Resend
        "daily_quota_exceeded": .quota, "monthly_quota_exceeded": .quota, "rate_limit_exceeded": .throttled,
        "missing_api_key": .authentication, "invalid_api_key": .authentication,
        "restricted_api_key": .authentication, "concurrent_idempotent_requests": .transient,
        "invalid_idempotent_request": .conflict, "invalid_idempotency_key": .invalid,
        // Supabase
        "over_email_send_rate_limit": .throttled, "over_request_rate_limit": .throttled, "bad_jwt": .authentication,
        "no_authorization": .authentication, "request_timeout": .timeout,
        // Apple
        "BadDeviceToken": .notFound, "Unregistered": .notFound, "ExpiredProviderToken": .authentication,
        "InvalidProviderToken": .authentication, "MissingProviderToken": .authentication,
        "TooManyProviderTokenUpdates": .throttled, "TooManyRequests": .throttled, "PayloadTooLarge": .tooLarge,
        "Shutdown": .unavailable,
        // Firebase
        "UNREGISTERED": .notFound, "QUOTA_EXCEEDED": .throttled, "THIRD_PARTY_AUTH_ERROR": .authentication,
        "SENDER_ID_MISMATCH": .permission, "UNAVAILABLE": .unavailable,
        // S3
        "SlowDown": .throttled, "InvalidAccessKeyId": .authentication, "SignatureDoesNotMatch": .authentication,
        "ExpiredToken": .authentication, "AccessDenied": .permission, "EntityTooLarge": .tooLarge,
        "RequestTimeTooSkewed": .authentication,
    ]
}
