import CommandKit
package import Glibc
import Synchronization
import Threads

/// Worker processes that are started again whenever they die, as a service manager would.
package final class KeptWorkers: Sendable {
    private struct State {
        var pids: [String: pid_t] = [:]
        var isStopping = false
        var badEnds: [String] = []
    }

    private let directory: String
    private let state = Mutex(State())

    /// - Parameter directory: where each writes its log, `<name>.log`.
    package init(directory: String) {
        self.directory = directory
        LoadGround.atEnd { [self] in kill() }
    }

    /// - Parameter program: this one if not given.
    package func keep(_ name: String, program: String? = nil, arguments: [String], environment: [String: String]) {
        Thread.start(name: "kept-worker") { [self] in
            let log = open("\(directory)/\(name).log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            defer { close(log) }
            while !state.withLock({ $0.isStopping }) {
                guard let pid = OwnProgram.spawn(arguments, environment: environment, output: log, instead: program)
                else {
                    state.withLock { $0.badEnds.append("\(name) could not be started") }
                    return
                }
                state.withLock { $0.pids[name] = pid }
                var status: Int32 = 0
                while waitpid(pid, &status, 0) < 0, errno == EINTR {}
                state.withLock { state in
                    state.pids[name] = nil
                    let signal = status & 0x7f
                    if signal != 0 && signal != SIGKILL {
                        state.badEnds.append("\(name) was ended by signal \(signal)\(lastWords(of: name))")
                    } else if signal == 0, (status >> 8) & 0xff != 0, state.isStopping {
                        state.badEnds.append("\(name) ended with \((status >> 8) & 0xff)")
                    }
                }
                usleep(100_000)
            }
        }
    }

    /// What its log says of the end: the runtime's own line, else the last lines. The directory is gone when somebody reads of it.
    private func lastWords(of name: String) -> String {
        let log = open("\(directory)/\(name).log", O_RDONLY | O_CLOEXEC)
        guard log >= 0 else { return "" }
        defer { close(log) }
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let size = lseek(log, 0, SEEK_END)
        let count = pread(log, &bytes, bytes.count, max(0, size - off_t(bytes.count)))
        let lines = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: "\n")
        let last = lines.lastIndex { $0.contains("Fatal error") }.map { lines[$0...].prefix(12) } ?? lines.suffix(3)
        return last.map { "\n    \(DisplayWidth.harmless(String($0.prefix(300))))" }.joined()
    }

    package func pid(of name: String) -> pid_t? { state.withLock { $0.pids[name] } }

    /// Drains them all; what went wrong with one of them.
    package func stop() async throws -> [String] {
        let pids = state.withLock { state in
            state.isStopping = true
            return Array(state.pids.values)
        }
        for pid in pids {
            Glibc.kill(pid, SIGCONT)
            Glibc.kill(pid, SIGTERM)
        }
        let ended = try await Patience.waited(.seconds(60)) { state.withLock { $0.pids.isEmpty } }
        return state.withLock { ended ? $0.badEnds : ["workers did not end: \($0.pids.keys.sorted())"] }
    }

    /// For the way out.
    package func kill() {
        let pids = state.withLock { state in
            state.isStopping = true
            return Array(state.pids.values)
        }
        for pid in pids { Glibc.kill(pid, SIGKILL) }
    }
}
