extension ErrorClass {
    /// From an SMTP reply and its enhanced status (RFC 3463), such as `5.1.1`. nil: the reply is no error.
    package init?(smtp reply: Int, enhanced: String? = nil) {
        guard reply >= 400 else { return nil }
        let isLasting = reply >= 500
        if let enhanced, let found = Self.enhanced(enhanced, isLasting: isLasting) {
            self = found
            return
        }
        switch reply {
        case 421: self = .unavailable
        case 450, 451: self = .transient
        case 452: self = .throttled
        case 454: self = .unavailable
        case 500...504: self = .unsupported
        case 521, 556: self = .unsupported
        case 530, 534, 535, 538: self = .authentication
        case 550, 551, 553: self = .notFound
        case 552: self = .tooLarge
        case 554: self = .permission
        case 555: self = .unsupported
        default: self = isLasting ? .invalid : .transient
        }
    }

    private static func enhanced(_ text: String, isLasting: Bool) -> ErrorClass? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { Int($0) }
        guard parts.count == 3, let subject = parts[1], let detail = parts[2] else { return nil }
        switch (subject, detail) {
        case (1, 1), (1, 2), (1, 6), (1, 10): return isLasting ? .notFound : .transient
        case (1, 3), (1, 7), (1, 8): return .invalid
        case (2, 1): return isLasting ? .permission : .transient
        case (2, 2), (4, 5): return isLasting ? .quota : .throttled
        case (2, 3), (3, 4): return .tooLarge
        case (3, 2), (4, 1), (4, 2): return isLasting ? .unavailable : .transient
        case (3, 1): return .transient
        case (4, 4), (4, 3), (4, 6): return isLasting ? .invalid : .transient
        case (4, 7): return .timeout
        case (5, 0), (5, 1), (5, 2), (5, 4): return .unsupported
        case (5, 3): return .tooLarge
        case (7, 1), (7, 2), (7, 13), (7, 26), (7, 27): return isLasting ? .permission : .throttled
        case (7, 8), (7, 9), (7, 11), (7, 14), (7, 30): return .authentication
        case (6, _): return .unsupported
        default: return nil
        }
    }
}
