/// Bytes that wait for a client. A piece that many clients get is held once for all of them.
struct OutgoingPieces: Sendable {
    private var waiting: [[UInt8]] = []
    /// How much of the first one has gone.
    private var sent = 0
    private(set) var bytes = 0

    var pieces: Int { waiting.count }

    mutating func append(_ piece: [UInt8]) {
        guard !piece.isEmpty else { return }
        waiting.append(piece)
        bytes += piece.count
    }

    /// Moves what fits; returns how many bytes.
    mutating func move(into space: UnsafeMutableBufferPointer<UInt8>) -> Int {
        var filled = 0
        var gone = 0
        while filled < space.count, gone < waiting.count {
            let piece = waiting[gone]
            let part = min(space.count - filled, piece.count - sent)
            _ = UnsafeMutableBufferPointer(rebasing: space[filled..<filled + part])
                .update(fromContentsOf: piece[sent..<sent + part])
            filled += part
            sent += part
            if sent == piece.count {
                gone += 1
                sent = 0
            }
        }
        bytes -= filled
        // An idle stream keeps no room.
        if gone == waiting.count { waiting = [] } else { waiting.removeFirst(gone) }
        return filled
    }
}
