/// Why a transfer did not end well. It names neither the address nor anything that was sent.
package struct TransferError: Error, Equatable, Sendable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        /// The request itself: a bad address, a bad header.
        case invalid
        /// The address leads where it must not lead.
        case refused
        case resolve
        case connect
        case tls
        case timedOut(Limit)
        case cancelled
        case tooLarge
        /// The answer was malformed.
        case malformed
        /// The connection ended before its time.
        case dropped
        /// Credentials were not accepted, or cannot be given safely.
        case authentication
        /// The source of the body threw.
        case source
        case redirect
        case closed
        case `internal`
    }

    package enum Limit: Sendable, Equatable {
        case connect
        case total
        case stall
    }

    /// How far the transfer had come.
    package enum Stage: Sendable, Equatable, Comparable {
        /// Nothing of the request was sent.
        case unsent
        /// The request may have arrived, in part or whole.
        case sent
        /// An answer had begun.
        case answered
    }

    package var kind: Kind
    package var stage: Stage
    /// libcurl's own code, 0 when it was not libcurl that stopped.
    package var code: Int32
    /// What happened, for an operator.
    package var sentence: String

    package init(_ kind: Kind, _ stage: Stage, code: Int32 = 0, _ sentence: String) {
        self.kind = kind
        self.stage = stage
        self.code = code
        self.sentence = sentence
    }

    /// The other side may have acted on the request.
    package var outcomeIsUnknown: Bool { stage != .unsent }

    package var description: String { sentence }
}
