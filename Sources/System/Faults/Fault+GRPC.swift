extension ErrorClass {
    /// From a gRPC status code. nil: OK.
    package init?(grpc status: Int) {
        switch status {
        case 0: return nil
        case 1: self = .cancelled
        case 3, 11: self = .invalid
        case 4: self = .timeout
        case 5: self = .notFound
        case 6, 9: self = .conflict
        case 7: self = .permission
        case 8: self = .quota
        case 10: self = .transient
        case 12: self = .unsupported
        case 13: self = .transient
        case 14: self = .unavailable
        case 15: self = .invalid
        case 16: self = .authentication
        default: self = .unknown
        }
    }
}
