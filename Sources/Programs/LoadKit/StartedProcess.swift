import CommandKit
import FoundationEssentials
package import Glibc
import Synchronization
import Threads

/// A process that this one has started, this very program if no other is named. It does not outlive the scenario.
package final class StartedProcess: Sendable {
    package let pid: pid_t
    private let log: String?
    private let code = Mutex<Int32?>(nil)

    /// - Parameter log: the file to which it writes what it says.
    package init(
        _ name: String, _ arguments: [String], environment: [String: String], log: String? = nil,
        program: String? = nil
    ) throws {
        let output = log.map { open($0, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600) }
        defer { if let output { close(output) } }
        guard let pid = OwnProgram.spawn(arguments, environment: environment, output: output, instead: program) else {
            throw Failure("\(name) could not be started")
        }
        (self.pid, self.log) = (pid, log)
        LoadGround.atEnd { [self] in kill() }
    }

    /// The end of what it said.
    package var said: String {
        String((log.flatMap { try? String(contentsOfFile: $0, encoding: .utf8) } ?? "").suffix(3000))
    }

    /// Without collecting it: `end` and `kill` do that.
    package var isAlive: Bool {
        guard code.withLock({ $0 }) == nil else { return false }
        var information = siginfo_t()
        return waitid(P_PID, id_t(pid), &information, WEXITED | WNOHANG | WNOWAIT) != 0 || information.si_signo == 0
    }

    package func signal(_ number: Int32) { if code.withLock({ $0 }) == nil { Glibc.kill(pid, number) } }

    /// As a service manager stops it, or as it ends by itself without a signal: its exit code, or 128 and the signal.
    package func end(_ number: Int32? = SIGTERM) async -> Int32 {
        if let number { signal(number) }
        return await Thread.run(name: "load-wait") { [self] in collect() }
    }

    /// As a crash. It is gone on return.
    package func kill() {
        signal(SIGKILL)
        _ = collect()
    }

    private func collect() -> Int32 {
        if let code = code.withLock({ $0 }) { return code }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 {
            // Another thread has collected it.
            guard errno == EINTR else { return code.withLock { $0 } ?? -1 }
        }
        let code = status & 0x7f == 0 ? (status >> 8) & 0xff : 128 + (status & 0x7f)
        self.code.withLock { $0 = code }
        return code
    }
}
