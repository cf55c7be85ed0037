import CLinux
import Glibc
import Threads

/// What every program with a command line does first and last.
package enum CommandProcess {
    package static func prepare() {
        OwnProgram.becomeBound(CommandLine.arguments)  // before anything that the other program would inherit
        UnixSignals.ignorePipe()
        Descriptor.fillStandard()
        raiseDescriptorLimit()
        // Pages and files go through by the megabyte, on many threads. What is never part of a heap goes back when it is freed; the heaps would
        // keep it in pieces (after 25 dense pages 140 MB, and 60 without).
        mallopt(M_MMAP_THRESHOLD, 1 << 20)
        // Each of a worker's connections has a thread, and would have a heap of its own that keeps what a large claim once took: eight for each
        // core may be. As many as can run at once do: 42.5 and 40.9 MB at the end of a drain, and 48.4 and 43.7 without.
        mallopt(M_ARENA_MAX, Int32(max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN)))))
    }

    /// Every open stream of an app has a descriptor, and many systems begin with 1,024. No more than are of use: some programs that we start
    /// close every possible one.
    private static func raiseDescriptorLimit() {
        let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(kind, &limit) == 0 else { return }
        let wanted = min(limit.rlim_max, 65_536)
        guard limit.rlim_cur < wanted else { return }
        limit.rlim_cur = wanted
        setrlimit(kind, &limit)
    }

    package static func run(_ arguments: [String], tree: CommandTree) async -> Int32 {
        await Application.run(arguments: arguments, surroundings: .live(), console: .standard(), tree: tree).rawValue
    }
}
