import CLinux
import Glibc

/// A plain detached thread with a name that `top -H` shows (Linux keeps 15 characters).
package enum Thread {
    private final class Start {
        let name: String
        let body: @Sendable () -> Void
        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    package static func start(name: String, _ body: @escaping @Sendable () -> Void) {
        let refusal = tryStart(name: name, body)
        precondition(refusal == nil, "the system refuses another thread")
    }

    /// The error number if the system refuses a thread; the body then never runs.
    package static func tryStart(name: String, _ body: @escaping @Sendable () -> Void) -> Int32? {
        let start = Unmanaged.passRetained(Start(name: name, body: body))
        var thread = pthread_t()
        let failure = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
                millrace_name_thread(String(start.name.prefix(15)))
                start.body()
                return nil
            }, start.toOpaque())
        guard failure == 0 else {
            start.release()
            return failure
        }
        pthread_detach(thread)
        return nil
    }

    /// Runs blocking work on its own thread and waits for it without blocking the cooperative pool.
    package static func run<T: Sendable>(name: String, _ body: @escaping @Sendable () -> T) async -> T {
        await withCheckedContinuation { continuation in
            start(name: name) { continuation.resume(returning: body()) }
        }
    }
}
