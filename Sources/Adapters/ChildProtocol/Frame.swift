/// The messages between a child and its parent: a kind, a length, and that many bytes. Kind and length are checked before anything is
/// kept, because a child that an attacker has taken over must not be able to harm its parent by what it sends.
package struct Frame: Sendable, Equatable {
    package enum Kind: UInt32, Sendable, CaseIterable {
        /// To the child: the request.
        case request = 1
        /// From the child, first of all: which layers of its sandbox the kernel has refused.
        case hello = 2
        /// Progress of a request.
        case note = 3
        /// The answer to a request.
        case result = 4
        /// The request failed: a reason in a word, a line end, a sentence.
        case failure = 5
    }

    package var kind: Kind
    package var payload: [UInt8]

    package init(_ kind: Kind, _ payload: [UInt8] = []) {
        self.kind = kind
        self.payload = payload
    }

    package static let headerSize = 8

    /// Both numbers in little endian.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.headerSize + payload.count)
        for number in [kind.rawValue, UInt32(payload.count)] {
            for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
        }
        return bytes + payload
    }
}
