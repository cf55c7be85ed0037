import Glibc
import Synchronization
import Threads

/// A worker as a child process that is restarted when it crashes, as a process manager does in production.
final class WorkerProcess: Sendable {
    private struct State {
        var pid: pid_t = 0
        var stopping = false
    }

    /// nil: this one.
    private let program: String?
    private let arguments: [String]
    private let environment: [String: String]
    private let state = Mutex(State())
    /// Called on a separate thread, with messages for the person at the terminal.
    private let say: @Sendable (String) -> Void
    /// Called with the number of a process that was killed, after its end.
    private let lost: @Sendable (pid_t) -> Void

    init(
        program: String? = nil, arguments: [String], environment: [String: String],
        say: @escaping @Sendable (String) -> Void,
        lost: @escaping @Sendable (pid_t) -> Void = { _ in }
    ) {
        self.program = program
        self.arguments = arguments
        self.environment = environment
        self.say = say
        self.lost = lost
    }

    /// 0: none runs.
    var pid: pid_t { state.withLock(\.pid) }

    /// Runs until `stop`; returns the last exit code. A crash is followed by a new start after a second.
    func run() async -> Int32 {
        await Thread.run(name: "dev-worker") { [self] in
            while true {
                guard let pid = start() else { return 1 }
                var status: Int32 = 0
                while waitpid(pid, &status, 0) < 0, errno == EINTR {}
                state.withLock { $0.pid = 0 }  // the number may be another's from now on
                let signal = status & 0x7f
                let code = signal == 0 ? (status >> 8) & 0xff : 128 + signal
                // A worker that was told to stop before it could handle the signal has ended correctly, too.
                if state.withLock({ $0.stopping }) { return signal == SIGTERM ? 0 : code }
                guard signal != 0 else {
                    say("the worker ended with exit code \(code)")
                    return code
                }
                say("the worker was killed by signal \(signal); starting another")
                lost(pid)
                usleep(1_000_000)
                if state.withLock({ $0.stopping }) { return code }
            }
        }
    }

    /// The first call drains the worker, the second makes it stop at once.
    func stop() {
        let pid = state.withLock { state in
            state.stopping = true
            return state.pid
        }
        if pid > 0 { kill(pid, SIGTERM) }
    }

    /// At once.
    func end() {
        stop()
        let pid = pid
        if pid > 0 { kill(pid, SIGKILL) }
    }

    private func start() -> pid_t? {
        let started =
            if let program {
                OwnProgram.spawn(bound: program, arguments, environment: environment)
            } else {
                OwnProgram.spawn(arguments, environment: environment)
            }
        guard let pid = started else {
            say("the worker cannot be started")
            return nil
        }
        let stops = state.withLock { state in
            state.pid = pid
            return state.stopping
        }
        if stops { kill(pid, SIGTERM) }  // `stop` came while there was nobody to signal
        return pid
    }
}
