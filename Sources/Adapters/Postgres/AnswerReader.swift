import CPostgres
import Glibc
import Threads

/// Reads a statement's answers under a deadline. When it passes, or the task is cancelled, the server is asked to cancel, and the rest is
/// read for a short grace period; if the server does not end even then, the connection is closed.
struct AnswerReader {
    enum Stop {
        case deadline
        case cancelled
        /// The answer is larger than it may be.
        case size
    }

    let handle: Handle
    let limit: Duration
    let interrupt: Interrupt?
    private var deadline: ContinuousClock.Instant
    private(set) var stopped: Stop?
    private(set) var gaveUp = false
    /// The most bytes allowed, and about how many have come since the first look.
    private let most: Int?
    private var received = 0
    private var turns = 0

    static let grace = Duration.seconds(3)
    /// An answer that comes in fewer pieces is not looked at: libpq takes some tens of thousands of bytes at once.
    private static let turnsUnseen = 64
    /// libpq takes so much at once where there is so much.
    private static let leastPiece = 8192

    init(handle: Handle, deadline: Duration, interrupt: Interrupt?, most: Int? = nil) {
        self.handle = handle
        self.most = most
        self.interrupt = interrupt
        limit = deadline
        self.deadline = ContinuousClock.now + deadline
    }

    /// The next answer; nil at the end, or when the connection was given up.
    mutating func next() throws(PostgresError) -> OpaquePointer? {
        if gaveUp { return nil }
        while true {
            let unsent = PQflush(handle.pointer)
            if unsent == 0, PQisBusy(handle.pointer) == 0 { break }
            if unsent < 0 {
                // What the server said before it closed the connection is still to be read.
                if PQconsumeInput(handle.pointer) == 0 { throw .lost(reason: handle.complaint) }
                if PQisBusy(handle.pointer) == 0 { break }
                throw .lost(reason: handle.complaint)
            }
            switch handle.wait(writing: unsent > 0, until: deadline, interrupt: stopped == nil ? interrupt : nil) {
            case .ready: try receive()
            case .deadline where stopped != nil:
                gaveUp = true
                return nil
            case .deadline: stop(.deadline)
            case .interrupted: stop(.cancelled)
            case .workWaiting: break
            }
        }
        return PQgetResult(handle.pointer)
    }

    /// libpq collects an answer until it is complete, and does not say how much it has. So we count what has left the socket. Bytes that
    /// arrive meanwhile are not counted: of a fast answer this counts a part, and never too much.
    private mutating func receive() throws(PostgresError) {
        turns += 1
        guard let most, stopped == nil, turns > Self.turnsUnseen else {
            if PQconsumeInput(handle.pointer) == 0 { throw .lost(reason: handle.complaint) }
            return
        }
        let before = handle.readable
        if PQconsumeInput(handle.pointer) == 0 { throw .lost(reason: handle.complaint) }
        received += max(before - handle.readable, min(before, Self.leastPiece))
        if received > most { stop(.size) }
    }

    private mutating func stop(_ reason: Stop) {
        stopped = reason
        deadline = ContinuousClock.now + Self.grace
        handle.cancelOnServer()
    }

    /// The error for the caller after a stop. The statement may have succeeded before the cancel arrived; we say so unless it failed for
    /// another reason.
    func verdict(_ reason: Stop, failure: PostgresError?) -> PostgresError {
        if gaveUp { return .lost(reason: "the server did not end a statement that was cancelled after \(limit)") }
        if let failure, failure.sqlState != "57014" { return failure }
        return switch reason {
        case .deadline: .timedOut(after: limit)
        case .cancelled: .cancelled
        case .size:
            .server(
                .init(
                    sqlState: "54000",
                    message: "the answer takes more than \(most ?? 0) bytes, and was not read to its end"))
        }
    }
}
