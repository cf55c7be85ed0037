import CLinux
import Glibc

/// A flag with a descriptor: set from anywhere, seen by a thread that polls.
package final class Interrupt: Sendable {
    package let descriptor: Int32

    package init() {
        descriptor = millrace_eventfd()
        precondition(descriptor >= 0, "no descriptor left for an interrupt")
    }

    deinit {
        close(descriptor)
    }

    package func fire() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    /// True when it was fired since the last call.
    package func take() -> Bool {
        var count: UInt64 = 0
        return read(descriptor, &count, 8) == 8
    }
}
