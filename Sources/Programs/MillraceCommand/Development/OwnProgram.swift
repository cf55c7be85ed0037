package import Glibc
import Subprocesses

/// This very program as a child process.
package enum OwnProgram {
    /// In its own process group, because we handle a Ctrl-C on our terminal ourselves.
    /// - Parameters:
    ///   - output: where its standard output and error go; ours if not given.
    ///   - program: another program than this one, for instance an older version.
    package static func spawn(
        _ arguments: [String], environment: [String: String], output: Int32? = nil, instead program: String? = nil
    ) -> pid_t? {
        var child = Subprocess(program ?? "/proc/self/exe", arguments, name: "millrace")
        child.environment = environment.map { "\($0.key)=\($0.value)" }
        if let output { child.descriptors = [(output, STDOUT_FILENO), (output, STDERR_FILENO)] }
        return try? child.start()
    }
}
