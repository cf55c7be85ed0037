package import Glibc
import Subprocesses
import Threads

/// This very program as a child process.
package enum OwnProgram {
    /// Its path, as the kernel has it.
    package static var path: String {
        var path = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &path, path.count - 1)
        guard count > 0 else { return CommandLine.arguments.first ?? "millrace" }
        return String(decoding: path.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// In its own process group, because we handle a Ctrl-C on our terminal ourselves.
    /// - Parameters:
    ///   - output: where its standard output and error go; ours if not given.
    ///   - program: another program than this one, for instance an older version.
    package static func spawn(
        _ arguments: [String], environment: [String: String], output: Int32? = nil, instead program: String? = nil
    ) -> pid_t? {
        var child = Subprocess(program ?? "/proc/self/exe", arguments, name: program ?? "millrace")
        child.resetsSignals = program != nil
        child.environment = environment.map { "\($0.key)=\($0.value)" }
        if let output { child.descriptors = [(output, STDOUT_FILENO), (output, STDERR_FILENO)] }
        return try? child.start()
    }
}

/// Another program as a child that does not outlive this process, however this one ends. The kernel can be told that only by the child itself:
/// so this program is started, says it, and becomes the other.
extension OwnProgram {
    /// The first word of such a line.
    private static let mark = "--below"

    /// The calling thread must last as long as the child: its end counts as the parent's.
    @available(*, noasync)
    package static func spawn(
        bound program: String, _ arguments: [String], environment: [String: String]
    ) -> pid_t? {
        var child = Subprocess("/proc/self/exe", [mark, "\(getpid())", program] + arguments, name: "millrace")
        child.resetsSignals = true
        child.environment = environment.map { "\($0.key)=\($0.value)" }
        return try? child.start()
    }

    /// Returns if this line is another.
    static func becomeBound(_ line: [String]) {
        guard line.count > 3, line[1] == mark, let parent = pid_t(line[2]) else { return }
        SignalAtParentsEnd.ask(SIGTERM)
        if getppid() != parent { exit(1) }  // it ended before we asked
        let words = line.dropFirst(3).map { strdup($0) } + [nil]
        execv(line[3], words)
        let why = String(cString: strerror(errno))
        _ = Descriptor.write(Array("error: \(line[3]) cannot be started: \(why)\n".utf8), to: STDERR_FILENO)
        exit(127)
    }
}

extension Invocation {
    /// For a worker that `dev` started: it must not outlive it.
    package func dieWithParent(_ parent: Int) {
        guard parent > 0 else { return }
        if getppid() != pid_t(parent) { exit(1) }  // it died before we asked
        // Asked for again and again: the kernel's own signal comes already when the thread ends that started us, and threads come and go.
        Thread.start(name: "parent-watch") {
            while getppid() == pid_t(parent) { usleep(200_000) }
            kill(getpid(), SIGTERM)
        }
    }
}
