extension ErrorClass {
    /// From libcurl's result of a transfer. `isSent`: the whole request had been sent, so it may have been acted upon. nil: no error.
    package init?(curl code: Int32, isSent: Bool) {
        switch code {
        case 0: return nil
        case 1, 3, 4, 20, 22, 43, 48, 49: self = .internal  // ours: a URL, an option, a build that lacks something
        case 5, 6, 7, 45, 97: self = .unavailable  // no name, no connection
        case 8, 14, 16, 92, 95, 96: self = isSent ? .unknown : .transient
        case 9: self = .permission
        case 18, 52, 55, 56, 61, 65, 81: self = isSent ? .unknown : .transient
        case 21: self = .invalid
        case 23, 26, 27: self = .internal
        case 28: self = isSent ? .unknown : .timeout
        case 35, 53, 54, 58, 59, 66, 77, 80, 82, 83, 90, 91, 98: self = .unavailable  // TLS
        case 60: self = .unavailable
        case 42: self = .cancelled
        case 47: self = .unsupported
        case 63: self = .tooLarge
        case 67, 94: self = .authentication
        case 78: self = .notFound
        default: self = isSent ? .unknown : .transient
        }
    }
}
