import Synchronization

/// A body on its way to its reader. The loop puts pieces in until a window is full; the reader takes them out.
final class Download: Sendable {
    /// Waits for the head, then for pieces, then for the end; each wait is resumed at the latest by the end, which always comes.
    private struct State {
        var head: HTTPHead?
        var pieces: [[UInt8]] = []
        var buffered = 0
        var isPaused = false
        var end: Result<HTTPHeaders, TransferError>?
        var waiter: CheckedContinuation<Void, Never>?

        mutating func takeWaiter() -> CheckedContinuation<Void, Never>? {
            defer { waiter = nil }
            return waiter
        }
    }

    private let state = Mutex(State())
    private let window: Int

    init(window: Int = 256 << 10) { self.window = window }

    func begin(_ head: HTTPHead) {
        wake { $0.head = head }
    }

    /// False when the window is full: the same bytes are to be offered again once the reader has taken some.
    func put(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let (taken, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Void, Never>?) in
            guard state.buffered < window else {
                state.isPaused = true
                return (false, nil)
            }
            state.pieces.append(Array(bytes))
            state.buffered += bytes.count
            return (true, state.takeWaiter())
        }
        waiter?.resume()
        return taken
    }

    func end(_ end: Result<HTTPHeaders, TransferError>) {
        wake { $0.end = end }
    }

    func head() async throws(TransferError) -> HTTPHead {
        await wait { $0.head != nil || $0.end != nil }
        let (head, end) = state.withLock { ($0.head, $0.end) }
        if let head { return head }
        if case .failure(let error) = end { throw error }
        throw TransferError(.malformed, .sent, "the answer has no head")
    }

    /// All that is there, at least one piece; nil at the end. `goOn` is true when the loop had stopped for us.
    func take() async throws(TransferError) -> (bytes: [UInt8], goOn: Bool)? {
        await wait { !$0.pieces.isEmpty || $0.end != nil }
        let (bytes, goOn, end) = state.withLock { state in
            var bytes = state.pieces.first ?? []
            bytes.reserveCapacity(state.buffered)
            for piece in state.pieces.dropFirst() { bytes += piece }
            let goOn = state.isPaused
            state.pieces.removeAll(keepingCapacity: true)
            state.buffered = 0
            state.isPaused = false
            return (bytes, goOn, state.end)
        }
        if !bytes.isEmpty { return (bytes, goOn) }
        _ = try end?.get()
        return nil
    }

    func ended() async -> Result<HTTPHeaders, TransferError> {
        await wait { $0.end != nil }
        return state.withLock { $0.end } ?? .failure(.closed)
    }

    private func wake(_ change: (inout State) -> Void) {
        let waiter = state.withLock { state in
            change(&state)
            return state.takeWaiter()
        }
        waiter?.resume()
    }

    /// There is one reader. It is not resumed by a cancellation but by the end that the cancellation brings about.
    private func wait(until holds: (borrowing State) -> Bool) async {
        while !state.withLock({ holds($0) }) {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    if holds(state) { return true }
                    precondition(state.waiter == nil, "a body has one reader")
                    state.waiter = continuation
                    return false
                }
                if isThere { continuation.resume() }
            }
        }
    }
}
