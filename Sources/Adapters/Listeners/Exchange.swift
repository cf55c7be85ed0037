import CMicrohttpd
import Glibc
import Synchronization
import Threads

/// One request and its answer, between the library's thread, which must never wait, and a handler, which may. While one side has nothing
/// for the other, the connection is suspended.
///
/// The calls to suspend and resume are made while our lock is held, contrary to the usual rule, so that a resume cannot overtake its
/// suspend. The library takes only its own lock then, under which it never calls us.
package final class Exchange: Sendable {
    private enum Inbound {
        /// → ended, refused
        case open
        case ended
        case refused(ErrorAnswer)
    }

    private enum Outbound {
        /// → ended, failed
        case open
        case ended
        case failed
    }

    private struct State {
        var connection: LibraryHandle?
        var isSuspended = false
        /// The client has gone, or we are closing.
        var isOver = false
        var task: Task<Void, Never>?

        var inbound = Inbound.open
        var chunks: [[UInt8]] = []
        var waiting = 0
        var received = 0
        /// Nobody reads any more.
        var discards = false

        var response: Response?
        var outbound = Outbound.open
        var outgoing = OutgoingPieces()
        /// The handler waits for room.
        var writerWaits = false
        /// Called once when the listener closes.
        var closing: (@Sendable () -> Void)?
    }

    /// Between the two sides at most, and a chunk more.
    private static let most = 65_536

    let target: String
    /// In bytes as they came.
    let targetSize: Int
    let connectionKey: Int
    let openConnections: OpenConnections
    let began = ContinuousClock.now
    private let limit = Mutex(0)
    private let hasBegun = Mutex(false)
    private let state = Mutex(State())
    private let readable = Wakeup()
    private let writable = Wakeup()
    let note = Mutex(Note())

    /// For the log.
    struct Note: Sendable {
        var method = ""
        var pattern: String?
        var status = 0
        /// What the handler adds.
        var additions: [(String, String)] = []
        /// The connection closes after the answer.
        var isLast = false
    }

    var isHead: Bool { note.withLock { $0.method == "HEAD" } }

    init(
        target: String, targetSize: Int, connection: OpaquePointer, connectionKey: Int, openConnections: OpenConnections
    ) {
        self.target = target
        self.targetSize = targetSize
        self.connectionKey = connectionKey
        self.openConnections = openConnections
        let held = LibraryHandle(connection)
        state.withLock { $0.connection = held }
    }

    // Called on the library's thread.

    /// True for the first call of a request.
    func begins() -> Bool {
        hasBegun.withLock { hasBegun in
            defer { hasBegun = true }
            return !hasBegun
        }
    }

    /// Answers on the socket itself, before the library does, and cuts the connection; only while the library reads the head.
    func refuseBeforeItBegins(_ judge: (OpaquePointer) -> Response?) {
        guard !hasBegun.withLock({ $0 }) else { return }
        guard let connection = state.withLock({ $0.connection }), let refusal = judge(connection.pointer) else {
            return
        }
        note.withLock { $0.status = refusal.status }
        let socket = millrace_mhd_socket(connection.pointer)
        let bytes = refusal.wholeMessage
        _ = send(socket, bytes, bytes.count, Int32(truncatingIfNeeded: MSG_NOSIGNAL | MSG_DONTWAIT))
        shutdown(socket, Int32(SHUT_RDWR))
    }

    func serve(upTo limit: Int, _ start: () -> Task<Void, Never>) {
        self.limit.withLock { $0 = limit }
        let task = start()
        let isOver = state.withLock { state in
            state.task = task
            return state.isOver
        }
        if isOver { task.cancel() }
    }

    /// An answer that needs no handler.
    func settle(_ response: Response) {
        state.withLock { state in
            state.discards = true
            state.response = response
        }
    }

    /// False when the connection should be cut.
    func receive(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let limit = limit.withLock { $0 }
        let goesOn = state.withLock { state in
            guard !state.isOver else { return false }
            state.received += bytes.count
            if case .open = state.inbound, state.received > limit, !state.discards {
                state.inbound = .refused(.tooLarge(limit))
                state.chunks = []
                state.waiting = 0
            }
            guard case .open = state.inbound, !state.discards else {
                // A little more is swallowed for the sake of the answer.
                return state.received <= limit + 1_048_576
            }
            state.chunks.append(Array(bytes))
            state.waiting += bytes.count
            if state.waiting >= Self.most { suspend(&state) }
            return true
        }
        if goesOn { readable.fire() }
        return goesOn
    }

    enum Step {
        case answer(Response)
        case wait
        case cut
    }

    /// The body has come, or there is none, or we were resumed.
    func proceed() -> Step {
        let step = state.withLock { state -> Step in
            guard !state.isOver else { return .cut }
            if case .open = state.inbound { state.inbound = .ended }
            if let response = state.response {
                state.response = nil
                return .answer(response)
            }
            suspend(&state)
            return .wait
        }
        readable.fire()
        return step
    }

    /// Puts bytes of a streamed answer there and returns how many; 0 when there are none yet.
    func fill(_ space: UnsafeMutableBufferPointer<UInt8>) -> Int {
        let (count, wakes) = state.withLock { state -> (Int, Bool) in
            guard !state.isOver else { return (millrace_mhd_end_with_error, false) }
            let count = state.outgoing.move(into: space)
            if count > 0 {
                defer { state.writerWaits = false }
                return (count, state.writerWaits)
            }
            switch state.outbound {
            case .ended: return (millrace_mhd_end_of_stream, false)
            case .failed: return (millrace_mhd_end_with_error, false)
            case .open:
                suspend(&state)
                return (0, false)
            }
        }
        if count > 0 { openConnections.change(connectionKey) { $0.sends(nil, at: .now) } }
        if wakes { writable.fire() }
        return count
    }

    /// The library will not speak of this request again.
    func completed() {
        end(forgetting: true)
    }

    // Called by the handler.

    func nextChunk() async throws -> [UInt8]? {
        while true {
            try Task.checkCancellation()
            let chunk: [UInt8]? = try state.withLock { state in
                if case .refused(let refusal) = state.inbound { throw refusal }
                if !state.chunks.isEmpty {
                    let chunk = state.chunks.removeFirst()
                    state.waiting -= chunk.count
                    if state.waiting < Self.most / 2 { resume(&state) }
                    return chunk
                }
                if state.isOver { throw CancellationError() }
                if case .ended = state.inbound { return nil }
                return []
            }
            if chunk?.isEmpty != true { return chunk }
            await readable.wait()
        }
    }

    /// The handler has answered. What it has not read of the body is swallowed.
    func offer(_ response: Response) {
        let isLate = state.withLock { state in
            state.discards = true
            state.chunks = []
            state.waiting = 0
            guard !state.isOver else { return true }
            state.response = response
            resume(&state)
            return false
        }
        if isLate { response.drop() }
    }

    func write(_ bytes: [UInt8]) async throws {
        while true {
            try Task.checkCancellation()
            let hasRoom = try state.withLock { state in
                if state.isOver { throw CancellationError() }
                guard state.outgoing.bytes < Self.most else {
                    state.writerWaits = true
                    return false
                }
                state.outgoing.append(bytes)
                resume(&state)
                return true
            }
            if hasRoom { return }
            await writable.wait()
        }
    }

    /// Takes the piece at once, or refuses it: more than `pieces` or `bytes` would wait for the client, or it has gone.
    func push(_ piece: [UInt8], pieces: Int, bytes: Int) -> Bool {
        state.withLock { state in
            guard !state.isOver, case .open = state.outbound, state.outgoing.pieces < pieces,
                state.outgoing.bytes + piece.count <= bytes
            else { return false }
            state.outgoing.append(piece)
            resume(&state)
            return true
        }
    }

    /// Closes the connection although the client does not read.
    func cut() {
        openConnections.cut(connectionKey)
        abort()
    }

    func whenClosing(_ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.closing = body }
    }

    /// The listener closes: an answer without an end has to end now.
    func tellClosing() {
        let closing = state.withLock { state in
            defer { state.closing = nil }
            return state.closing
        }
        closing?()
    }

    func finish(failed: Bool) {
        state.withLock { state in
            guard case .open = state.outbound else { return }
            state.outbound = failed ? .failed : .ended
            resume(&state)
        }
    }

    /// The client has gone, or has to: the handler is cancelled, and the connection closed.
    func abort() {
        end(forgetting: false)
    }

    private func end(forgetting: Bool) {
        let (task, left) = state.withLock { state -> (Task<Void, Never>?, Response?) in
            state.isOver = true
            resume(&state)
            if forgetting { state.connection = nil }
            state.outgoing = OutgoingPieces()
            state.closing = nil
            defer { state.response = nil }
            return (state.task, state.response)
        }
        left?.drop()
        task?.cancel()
        readable.fire()
        writable.fire()
    }

    /// The library may call once more on its way out of a call that suspended; a second suspend would tie knots in its lists.
    private func suspend(_ state: inout State) {
        guard !state.isSuspended, let connection = state.connection else { return }
        state.isSuspended = true
        openConnections.change(connectionKey) { $0.handedOver() }
        MHD_suspend_connection(connection.pointer)
    }

    private func resume(_ state: inout State) {
        guard state.isSuspended, let connection = state.connection else { return }
        state.isSuspended = false
        switch state.inbound {
        case .open: openConnections.change(connectionKey) { $0.received(0, at: .now) }
        case .ended, .refused: openConnections.change(connectionKey) { $0.sends(nil, at: .now) }
        }
        MHD_resume_connection(connection.pointer)
    }
}
