import Synchronization

/// Connects a producer that pushes with a consumer that pulls, one piece at a time: a blob store pushes, a transfer pulls.
final class PiecePipe: Sendable {
    private enum State {
        case empty
        case full([UInt8])
        case asked(CheckedContinuation<Result<[UInt8]?, any Error>, Never>)
        case over(any Error)
        case complete
    }

    private let state = Mutex<(now: State, maker: CheckedContinuation<Bool, Never>?)>((.empty, nil))

    /// Waits until there is room. Throws when the consumer has gone.
    func put(_ piece: [UInt8]) async throws {
        guard await room() else { throw CancellationError() }
        let asker = state.withLock { state -> CheckedContinuation<Result<[UInt8]?, any Error>, Never>? in
            switch state.now {
            case .asked(let asker):
                state.now = .empty
                return asker
            case .empty:
                state.now = .full(piece)
                return nil
            case .full, .over, .complete: return nil
            }
        }
        asker?.resume(returning: .success(piece))
    }

    private func room() async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now: Bool? = state.withLock { state in
                    switch state.now {
                    case .empty, .asked: return true
                    case .over, .complete: return false
                    case .full:
                        state.maker = continuation
                        return nil
                    }
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            end(CancellationError())
        }
    }

    /// Ends the stream: the last piece was put, or none will follow.
    func finish(_ error: (any Error)? = nil) async {
        if let error { return end(error) }
        guard await room() else { return }
        let asker = state.withLock { state -> CheckedContinuation<Result<[UInt8]?, any Error>, Never>? in
            guard case .asked(let asker) = state.now else {
                if case .empty = state.now { state.now = .complete }
                return nil
            }
            state.now = .complete
            return asker
        }
        asker?.resume(returning: .success(nil))
    }

    /// nil at the end.
    func next() async throws -> [UInt8]? {
        let result: Result<[UInt8]?, any Error> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (found, maker) = state.withLock {
                    state -> (Result<[UInt8]?, any Error>?, CheckedContinuation<Bool, Never>?) in
                    switch state.now {
                    case .full(let piece):
                        state.now = .empty
                        defer { state.maker = nil }
                        return (.success(piece), state.maker)
                    case .over(let error): return (.failure(error), nil)
                    case .complete: return (.success(nil), nil)
                    case .asked: return (.failure(CancellationError()), nil)
                    case .empty:
                        state.now = .asked(continuation)
                        return (nil, nil)
                    }
                }
                maker?.resume(returning: true)
                if let found { continuation.resume(returning: found) }
            }
        } onCancel: {
            end(CancellationError())
        }
        return try result.get()
    }

    /// Why it ended early, if it did.
    var failure: (any Error)? {
        state.withLock { if case .over(let error) = $0.now, !(error is CancellationError) { error } else { nil } }
    }

    func end(_ error: any Error) {
        let (asker, maker) = state.withLock {
            state -> (CheckedContinuation<Result<[UInt8]?, any Error>, Never>?, CheckedContinuation<Bool, Never>?) in
            defer { state.maker = nil }
            switch state.now {
            case .over, .complete: return (nil, state.maker)
            case .asked(let asker):
                state.now = .over(error)
                return (asker, state.maker)
            case .empty, .full:
                state.now = .over(error)
                return (nil, state.maker)
            }
        }
        maker?.resume(returning: false)
        asker?.resume(returning: .failure(error))
    }
}

extension MessageBytes {
    /// Runs `body` with a source of the pieces that reads ahead by one. Leaving `body` ends the reading.
    func streamed<Value: Sendable>(
        from blobs: BlobSource, _ body: @Sendable (PiecePipe) async -> Value
    ) async -> Value {
        let handing = PiecePipe()
        async let _: Void = feed(handing, from: blobs)
        let value = await body(handing)
        handing.end(CancellationError())
        return value
    }

    private func feed(_ handing: PiecePipe, from blobs: BlobSource) async {
        do {
            try await read(from: blobs) { try await handing.put($0) }
            await handing.finish()
        } catch {
            await handing.finish(error)
        }
    }
}
