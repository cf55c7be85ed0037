package import CLinux
import Glibc

/// How to start a program as a child process: the only place that does. What is done with the child is its starter's affair.
package struct Subprocess {
    /// A path; with `searchesPath` also a name that is looked up in PATH.
    package var program: String
    /// The first is the program's own name.
    package var words: [String]
    /// `NAME=value`; nil: ours.
    package var environment: [String]?
    package var searchesPath = false
    /// Descriptors of ours, and where the child has them.
    package var descriptors: [(ours: Int32, place: Int32)] = []
    /// From here on, the child has no descriptors; nil: it has all of ours that do not close themselves.
    package var firstClosed: Int32?
    /// A Ctrl-C on our terminal is then for us to act on, and the whole group can be killed.
    package var hasOwnGroup = true
    /// We may ignore SIGPIPE or SIGINT, or block signals; the child then does not.
    package var resetsSignals = false

    package init(_ program: String, _ arguments: [String], name: String? = nil) {
        self.program = program
        words = [name ?? program] + arguments
    }

    package struct Refused: Error {
        /// The system's error number.
        package let number: Int32
    }

    package func start() throws(Refused) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (ours, place) in descriptors { posix_spawn_file_actions_adddup2(&actions, ours, place) }
        if let firstClosed { millrace_spawn_close_from(&actions, firstClosed) }

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var flags: Int32 = 0
        if hasOwnGroup {
            posix_spawnattr_setpgroup(&attributes, 0)
            flags |= Int32(POSIX_SPAWN_SETPGROUP)
        }
        if resetsSignals {
            var none = sigset_t()
            var all = sigset_t()
            sigemptyset(&none)
            sigfillset(&all)
            posix_spawnattr_setsigmask(&attributes, &none)
            posix_spawnattr_setsigdefault(&attributes, &all)
            flags |= Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF)
        }
        posix_spawnattr_setflags(&attributes, Int16(flags))

        let arguments = words.map { strdup($0) } + [nil]
        let variables = environment.map { $0.map { strdup($0) } + [nil] }
        defer { (arguments + (variables ?? [])).forEach { free($0) } }
        var pid = pid_t()
        let spawn = searchesPath ? posix_spawnp : posix_spawn
        let error =
            if let variables {
                spawn(&pid, program, &actions, &attributes, arguments, variables)
            } else {
                spawn(&pid, program, &actions, &attributes, arguments, environ)
            }
        guard error == 0 else { throw Refused(number: error) }
        return pid
    }

    /// Waits for its end; how it ended, as `waitpid` says it. Nil: it was no child of ours.
    @available(*, noasync)
    package static func wait(for pid: pid_t) -> Int32? {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 { guard errno == EINTR else { return nil } }
        return status
    }
}
