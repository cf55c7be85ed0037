package import Faults

extension Fault {
    /// The fault of a failed transfer; the error says whether the other side may have acted on it.
    package init(transfer error: TransferError) {
        let kind: ErrorClass =
            switch error.kind {
            case .cancelled, .closed: .cancelled
            case .timedOut(.connect): .unavailable
            case .timedOut: .timeout
            case _ where error.outcomeIsUnknown: .unknown
            case .invalid, .source, .internal: .internal
            case .refused: .permission
            case .resolve, .connect, .tls, .dropped: .unavailable
            case .authentication: .authentication
            case .tooLarge, .malformed, .redirect: .transient
            }
        self.init(kind, error.sentence)
    }
}
