import CPostgres
import Glibc
import Threads

/// Owns one libpq connection; used only on its actor's thread.
final class Handle {
    let pointer: OpaquePointer

    init(_ pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit {
        PQfinish(pointer)
    }

    var descriptor: Int32 { PQsocket(pointer) }
    var isBad: Bool { PQstatus(pointer) == CONNECTION_BAD }

    /// How many bytes wait in the socket.
    var readable: Int {
        var count: Int32 = 0
        return ioctl(descriptor, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
    }

    /// libpq's last complaint, in one line without its prefix.
    var complaint: String {
        guard let message = PQerrorMessage(pointer) else { return "unknown" }
        return Self.oneLine(String(cString: message))
    }

    static func oneLine(_ message: String) -> String {
        message.split(whereSeparator: \.isNewline).map { line in
            let line = line.drop { $0 == "\t" }
            return line.hasPrefix("FATAL:") || line.hasPrefix("ERROR:")
                ? line.drop { $0 != " " }.drop { $0 == " " } : line
        }.joined(separator: "; ")
    }

    /// Asks the server to cancel the running statement. On its own thread, because connecting to the server may block for long.
    func cancelOnServer() {
        guard let cancel = PQgetCancel(pointer) else { return }
        let ticket = CancelTicket(cancel)
        Thread.start(name: "pg-cancel") { ticket.redeem() }
    }
}

/// Hands a PGcancel to the thread that uses and frees it. Unchecked: `redeem` alone touches the pointer, and is called once.
private final class CancelTicket: @unchecked Sendable {
    private let cancel: OpaquePointer

    init(_ cancel: OpaquePointer) {
        self.cancel = cancel
    }

    func redeem() {
        var complaint = [CChar](repeating: 0, count: 256)
        _ = PQcancel(cancel, &complaint, 256)
        PQfreeCancel(cancel)
    }
}

/// How a wait on the socket ended.
enum Readiness {
    case ready
    case deadline
    case interrupted
    case workWaiting
}

extension Handle {
    /// Waits until the socket can be read (or also written), the deadline passes, or the wait is interrupted.
    func wait(
        reading: Bool = true, writing: Bool = false, until deadline: ContinuousClock.Instant,
        interrupt: Interrupt?, yieldingTo executor: ThreadExecutor? = nil
    ) -> Readiness {
        while true {
            if let executor, executor.hasWork { return .workWaiting }
            var events = reading ? Int16(POLLIN) : 0
            if writing { events |= Int16(POLLOUT) }
            var waits = [
                pollfd(fd: descriptor, events: events, revents: 0),
                pollfd(fd: interrupt?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: executor?.wakeDescriptor ?? -1, events: Int16(POLLIN), revents: 0),
            ]
            let left = ContinuousClock.now.duration(to: deadline)
            if left <= .zero { return .deadline }
            let milliseconds = min(left / .milliseconds(1), 3_600_000).rounded(.up)
            let ready = poll(&waits, 3, Int32(milliseconds))
            if ready == 0 || (ready < 0 && errno == EINTR) { continue }
            if let interrupt, waits[1].revents != 0, interrupt.take() { return .interrupted }
            if let executor, waits[2].revents != 0 {
                var count: UInt64 = 0
                _ = read(executor.wakeDescriptor, &count, 8)
                if executor.hasWork { return .workWaiting }
            }
            if waits[0].revents != 0 { return .ready }
        }
    }
}
