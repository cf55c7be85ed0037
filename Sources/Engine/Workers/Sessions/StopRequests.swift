import Synchronization
import Threads

/// Requests to stop, counted: the first drains, the second stops at once.
final class StopRequests: Sendable {
    private let requests = Mutex(0)
    private let signal = Wakeup()

    var count: Int { requests.withLock { $0 } }

    func request() {
        requests.withLock { $0 += 1 }
        signal.fire()
    }

    func firstRequest() async {
        while count == 0, !Task.isCancelled { await signal.wait() }
    }

    /// A pause that a request ends.
    func pause(_ limit: Duration) async {
        if count == 0 { await signal.wait(for: limit) }
    }
}
