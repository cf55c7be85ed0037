import CLinux
import Glibc
import Subprocesses

/// A started program with three pipes and its own process group. It belongs to the thread that started it: when the thread ends, the kernel
/// kills the program.
struct ChildProcess {
    let pid: pid_t
    let ended: Int32
    private(set) var requests: Int32
    let answers: Int32
    let messages: Int32
    /// Our own peak memory when it was started, which the kernel counts as the child's, too.
    private let ours: Int

    private struct Pipe {
        var reading: Int32
        var writing: Int32

        init() throws(ChildFailure) {
            var ends: [Int32] = [-1, -1]
            guard millrace_pipe(&ends, O_CLOEXEC) == 0 else { throw .cannotStart("a pipe", errno) }
            (reading, writing) = (ends[0], ends[1])
        }
    }

    @available(*, noasync)
    init(_ program: SandboxedChild.Program, limits: SandboxedChild.Limits, files: [Int32]) throws(ChildFailure) {
        var toClose: [Int32] = []
        var isStarted = false
        defer { for descriptor in toClose { close(descriptor) } }
        let (input, output, complaints) = (try Pipe(), try Pipe(), try Pipe())
        toClose = [input.reading, output.writing, complaints.writing]
        let ends = [input.writing, output.reading, complaints.reading]
        defer { if !isStarted { for descriptor in ends { close(descriptor) } } }

        // High up first: a file's place may be another's descriptor.
        var moved: [Int32] = []
        for file in files {
            let high = fcntl(file, F_DUPFD_CLOEXEC, 200)
            guard high >= 0 else { throw .cannotStart("a file", errno) }
            toClose.append(high)
            moved.append(high)
        }
        let own = [
            "memory=\(limits.memory)", "cpu=\(max(1, limits.cpu.components.seconds))", "file=\(limits.fileSize)",
            "nice=\(limits.niceness)", "parent=\(getpid())",
        ]
        var child = Subprocess(program.path, own + program.arguments)
        child.environment = program.environment.map { "\($0.key)=\($0.value)" }
        child.descriptors = ([input.reading, output.writing, complaints.writing] + moved).enumerated().map {
            (ours: $0.element, place: Int32($0.offset))
        }
        child.firstClosed = Int32(child.descriptors.count)
        child.resetsSignals = true
        let started: pid_t
        do throws(Subprocess.Refused) {
            started = try child.start()
        } catch {
            throw .cannotStart(program.path, error.number)
        }
        let watch = millrace_pidfd(started)
        guard watch >= 0 else {
            let error = errno
            Glibc.kill(started, SIGKILL)
            var status: Int32 = 0
            waitpid(started, &status, 0)
            throw .cannotStart("a watch on it", error)
        }
        isStarted = true
        var used = rusage()
        getrusage(RUSAGE_SELF.rawValue, &used)
        self.ours = used.ru_maxrss * 1024
        pid = started
        ended = watch
        requests = input.writing
        answers = output.reading
        messages = complaints.reading
        for descriptor in ends {
            _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        }
    }

    /// The child reads its end.
    mutating func endRequests() {
        if requests >= 0 { close(requests) }
        requests = -1
    }

    /// Its peak memory so far, in bytes, while it lives; 0 when it is unknown.
    var peak: Int {
        guard let file = fopen("/proc/\(pid)/status", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, 256, file) != nil {
            guard strncmp(line, "VmHWM:", 6) == 0 else { continue }
            return line.dropFirst(6).prefix { $0 != 0 }.reduce(0) { number, character in
                (48...57).contains(character) ? number * 10 + Int(character - 48) : number
            } * 1024
        }
        return 0
    }

    /// The processor time that it has had, and how long its first thread was ready to run and did not.
    var times: (cpu: Duration, waited: Duration) {
        let fields = Self.first("/proc/\(pid)/stat").split(separator: ")").last?.split(separator: " ") ?? []
        let ticks = fields.count > 12 ? (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0) : 0
        let schedule = Self.first("/proc/\(pid)/schedstat").split { $0 == " " || $0 == "\n" }
        return (.milliseconds(ticks * 10), .nanoseconds(schedule.count > 1 ? Int(schedule[1]) ?? 0 : 0))
    }

    private static func first(_ path: String) -> String {
        guard let file = fopen(path, "r") else { return "" }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 1024)
        guard fgets(&line, 1024, file) != nil else { return "" }
        return String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Kills it, with everything that it may have started.
    func kill() {
        Glibc.kill(-pid, SIGKILL)
    }

    /// Waits for the end, which has come or is certain to come.
    ///
    /// - Parameter seen: the most that `peak` has said: good until then, where the kernel's own figure is no more than ours was.
    @available(*, noasync)
    mutating func reap(seen: Int) -> (status: Int32, usage: Usage) {
        var status: Int32 = 0
        var used = rusage()
        while wait4(pid, &status, 0, &used) < 0, errno == EINTR {}
        Glibc.kill(-pid, SIGKILL)  // the group may have outlived it
        endRequests()
        for descriptor in [answers, messages, ended] { close(descriptor) }
        var usage = Usage()
        for time in [used.ru_utime, used.ru_stime] {
            usage.cpu += .seconds(time.tv_sec) + .microseconds(Int64(time.tv_usec))
        }
        usage.peak = used.ru_maxrss * 1024 > ours ? used.ru_maxrss * 1024 : seen
        return (status, usage)
    }
}

extension ChildFailure {
    static func cannotStart(_ what: String, _ error: Int32) -> ChildFailure {
        ChildFailure(.cannotStart, "the child could not be started: \(what): \(String(cString: strerror(error)))")
    }
}
