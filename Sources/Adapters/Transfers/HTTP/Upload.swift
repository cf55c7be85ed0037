import Synchronization

/// A body on its way from its source. The source puts pieces in until a window is full; the loop takes them out.
final class Upload: Sendable {
    enum Taken: Equatable {
        case bytes(Int)
        case nothingYet
        case over
        case broken
    }

    private struct State {
        var piece: [UInt8] = []
        var read = 0
        var next: [UInt8]?
        var isComplete = false
        var isBroken = false
        var isStopped = false
        /// The loop found nothing, and is to be told when there is something.
        var isAwaited = false
        var left: Int?
        var source: CheckedContinuation<Void, Never>?

        var hasRoom: Bool { next == nil || isStopped }

        /// Only when there is room, because its next piece must not overwrite the present one.
        mutating func takeSource() -> CheckedContinuation<Void, Never>? {
            guard hasRoom else { return nil }
            defer { source = nil }
            return source
        }
    }

    private let state: Mutex<State>

    init(length: Int?) {
        var state = State()
        state.left = length
        self.state = Mutex(state)
    }

    func take(into buffer: UnsafeMutableRawBufferPointer) -> Taken {
        let (taken, source) = state.withLock { state -> (Taken, CheckedContinuation<Void, Never>?) in
            if state.isBroken { return (.broken, nil) }
            if state.read == state.piece.count, let next = state.next {
                state.piece = next
                state.read = 0
                state.next = nil
            }
            let count = min(buffer.count, state.piece.count - state.read)
            guard count > 0 else {
                if state.isComplete { return ((state.left ?? 0) == 0 ? .over : .broken, nil) }
                state.isAwaited = true
                return (.nothingYet, state.takeSource())
            }
            state.piece.withUnsafeBytes {
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[state.read..<state.read + count]))
            }
            state.read += count
            return (.bytes(count), state.takeSource())
        }
        source?.resume()
        return taken
    }

    /// Ends it before its time; false when all has been taken already.
    func cut() -> Bool {
        state.withLock { state in
            if state.isComplete, state.next == nil, state.read == state.piece.count { return false }
            state.isBroken = true
            return true
        }
    }

    /// The transfer is over, even if the source has more.
    func stop() {
        let source = state.withLock { state in
            state.isStopped = true
            return state.takeSource()
        }
        source?.resume()
    }

    /// Puts the whole body in, piece by piece, with one piece ahead of the loop. `goOn` wakes a loop that waits.
    func fill(
        from next: @Sendable () async throws -> [UInt8]?, goOn: @Sendable () -> Void
    ) async {
        while await room() {
            var piece: [UInt8]?
            do {
                piece = try await next()
            } catch {
                if put({ $0.isBroken = true }) { goOn() }
                return
            }
            if let piece, piece.isEmpty { continue }
            let isAwaited = put { state in
                guard let piece else {
                    state.isComplete = true
                    return
                }
                if let left = state.left {
                    state.left = left - piece.count
                    if left < piece.count { state.isBroken = true }
                }
                state.next = piece
            }
            if isAwaited { goOn() }
            if piece == nil { return }
        }
    }

    private func put(_ change: (inout State) -> Void) -> Bool {
        state.withLock { state in
            change(&state)
            defer { state.isAwaited = false }
            return state.isAwaited
        }
    }

    /// False when the transfer is over.
    private func room() async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    if state.hasRoom { return true }
                    state.source = continuation
                    return false
                }
                if isThere { continuation.resume() }
            }
        } onCancel: {
            stop()
        }
        return state.withLock { !$0.isStopped }
    }
}
