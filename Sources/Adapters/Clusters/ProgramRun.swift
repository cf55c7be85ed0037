import CLinux
import Glibc
import Subprocesses

/// A program run to its end: its output up to a bound, and how it ended.
struct ProgramRun {
    enum Ending: Equatable {
        case exited(Int32)
        case signalled(Int32)
        case stopped  // we ended it: its deadline passed or the task was cancelled
    }

    let ending: Ending
    let output: String

    var succeeded: Bool { ending == .exited(0) }
    var lines: [String] { lastLines(of: output) }

    /// Runs `program` in its own process group, with stdout and stderr in one stream; throws only when it cannot run.
    ///
    /// - Parameter input: its standard input; at most a pipe's buffer (4096 bytes), because nobody feeds it while it runs.
    @available(*, noasync)
    static func run(
        _ program: String, _ arguments: [String], input: String = "", within limit: WorkDeadline, bound: Int = 65_536,
    ) throws(ClusterError) -> ProgramRun {
        precondition(input.utf8.count <= 4096)
        let reading = try Pipe()
        let writing = try Pipe()
        _ = input.withCString { write(reading.writeEnd, $0, strlen($0)) }
        reading.closeWriteEnd()

        var child = Subprocess(program, arguments)
        child.searchesPath = true
        child.environment = surroundings()
        child.descriptors = [(reading.readEnd, 0), (writing.writeEnd, 1), (writing.writeEnd, 2)]
        child.firstClosed = 3  // Postgres outlives us; it must not hold our sockets
        child.resetsSignals = true
        let pid: pid_t
        do throws(Subprocess.Refused) {
            pid = try child.start()
        } catch {
            throw error.number == ENOENT
                ? .missingTool(name: program)
                : .failed(step: "Running \(program)", log: [describe(errno: error.number)])
        }
        writing.closeWriteEnd()
        return follow(pid, output: writing.readEnd, within: limit, bound: bound)
    }

    /// Few of our variables are passed on: PGOPTIONS, PGDATA or a German LC_MESSAGES would change what the programs do and print.
    private static func surroundings() -> [String] {
        var list = ["LC_ALL=C", "PATH=" + (environment("PATH") ?? "/usr/bin:/bin")]
        if let libraries = environment("LD_LIBRARY_PATH") { list.append("LD_LIBRARY_PATH=" + libraries) }
        return list
    }

    private static func follow(_ pid: pid_t, output: Int32, within limit: WorkDeadline, bound: Int) -> ProgramRun {
        var collected: [UInt8] = []
        var stopping: (since: ContinuousClock.Instant, killed: Bool)?
        var status: Int32 = 0
        while waitpid(pid, &status, WNOHANG) == 0 {
            if let (since, killed) = stopping {
                if !killed, ContinuousClock.now - since > .seconds(2) {
                    kill(-pid, SIGKILL)
                    stopping = (since, true)
                }
            } else if limit.isOver {
                kill(-pid, SIGTERM)  // initdb tidies up on TERM
                stopping = (.now, false)
            }
            if !collect(from: output, into: &collected, waiting: 20, bound: bound) { usleep(1000) }
        }
        // Its last output. Limited, because a process that it left in the background may go on writing.
        for _ in 0..<64 where !collect(from: output, into: &collected, waiting: 0, bound: bound) { break }
        // WIFEXITED and its family are macros that Swift does not see.
        let signal = status & 0x7f
        let ending = signal == 0 ? Ending.exited((status >> 8) & 0xff) : .signalled(signal)
        return ProgramRun(
            ending: stopping == nil ? ending : .stopped, output: String(decoding: collected, as: UTF8.self))
    }

    /// Reads the available output and keeps its end; false at the end of the stream or when nothing came.
    private static func collect(
        from descriptor: Int32, into collected: inout [UInt8], waiting milliseconds: Int32, bound: Int,
    ) -> Bool {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        let ready = poll(&waiting, 1, milliseconds)
        guard ready > 0 else { return ready == 0 && milliseconds > 0 }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = read(descriptor, &buffer, buffer.count)
        guard count > 0 else { return false }
        collected += buffer[..<count]
        if collected.count > bound { collected.removeFirst(collected.count - bound) }
        return true
    }
}

/// A pipe that closes both ends when it is released.
private final class Pipe {
    let readEnd: Int32
    private(set) var writeEnd: Int32

    init() throws(ClusterError) {
        var ends: [Int32] = [-1, -1]
        guard millrace_pipe(&ends, O_CLOEXEC) == 0 else {
            throw .failed(step: "Opening a pipe", log: [describe(errno: errno)])
        }
        readEnd = ends[0]
        writeEnd = ends[1]
    }

    func closeWriteEnd() {
        if writeEnd >= 0 { close(writeEnd) }
        writeEnd = -1
    }

    deinit {
        closeWriteEnd()
        close(readEnd)
    }
}
