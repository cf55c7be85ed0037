import CPostgres
import Threads

/// Reads a statement's answers under a deadline. When it passes, or the task is cancelled, the server is told, and the rest is
/// read for a short grace; a server that does not end even then has its connection broken off.
struct Reader {
    enum Stop {
        case deadline
        case cancelled
    }

    let handle: Handle
    let limit: Duration
    let interrupt: Interrupt?
    private var deadline: ContinuousClock.Instant
    private(set) var stopped: Stop?
    private(set) var gaveUp = false

    static let grace = Duration.seconds(3)

    init(handle: Handle, deadline: Duration, interrupt: Interrupt?) {
        self.handle = handle
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
                // What the server said before it hung up is still to be read.
                if PQconsumeInput(handle.pointer) == 0 { throw .lost(reason: handle.complaint) }
                if PQisBusy(handle.pointer) == 0 { break }
                throw .lost(reason: handle.complaint)
            }
            switch handle.wait(writing: unsent > 0, until: deadline, interrupt: stopped == nil ? interrupt : nil) {
            case .ready:
                if PQconsumeInput(handle.pointer) == 0 { throw .lost(reason: handle.complaint) }
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

    private mutating func stop(_ reason: Stop) {
        stopped = reason
        deadline = ContinuousClock.now + Self.grace
        handle.cancelOnServer()
    }

    /// What to tell the caller after a stop. The statement may have ended well before the cancel arrived; we say so only if it
    /// failed for another reason.
    func verdict(_ reason: Stop, failure: PostgresError?) -> PostgresError {
        if gaveUp { return .lost(reason: "the server did not end a statement that was cancelled after \(limit)") }
        if let failure, failure.sqlState != "57014" { return failure }
        return switch reason {
        case .deadline: .timedOut(after: limit)
        case .cancelled: .cancelled
        }
    }
}
