import Glibc

/// Signals as values: the handler writes their numbers into a pipe, and a thread reads them there. Blocking them instead would
/// not do: the main thread of an async program waits in `sigsuspend` with everything unblocked.
package enum UnixSignals {
    /// Written once before the first handler is installed, read by the handlers.
    nonisolated(unsafe) private static var writeEnd: Int32 = -1

    /// A reader that has gone away is then an error of `write`, and not the end.
    package static func ignorePipe() {
        signal(SIGPIPE, SIG_IGN)
    }

    /// Calls back for every INT and TERM from now on, and for HUP, because a closed terminal must not leave processes that we have started.
    /// Under nohup HUP stays ignored.
    package static func onStop(_ body: @escaping @Sendable (Int32) -> Void) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        let readEnd = ends[0]
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        writeEnd = ends[1]
        Thread.start(name: "signals") {
            var number: UInt8 = 0
            while true {
                if read(readEnd, &number, 1) == 1 { body(Int32(number)) }
            }
        }
        for number in [SIGINT, SIGTERM, SIGHUP] {
            let before = signal(number) { number in
                let kept = errno
                var byte = UInt8(truncatingIfNeeded: number)
                _ = write(UnixSignals.writeEnd, &byte, 1)
                errno = kept
            }
            if number == SIGHUP, unsafeBitCast(before, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self) {
                signal(number, SIG_IGN)
            }
        }
    }
}
