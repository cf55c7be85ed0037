package import Glibc

/// This very program as a child process.
package enum OwnProgram {
    /// In its own process group, because we handle a Ctrl-C on our terminal ourselves.
    /// - Parameters:
    ///   - output: where its standard output and error go; ours if not given.
    ///   - program: another program than this one, for instance an older version.
    package static func spawn(
        _ arguments: [String], environment: [String: String], output: Int32? = nil, instead program: String? = nil
    ) -> pid_t? {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let output {
            posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
            posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO)
        }
        let argv = (["millrace"] + arguments).map { strdup($0) } + [nil]
        let variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for string in argv + variables { free(string) } }
        var pid = pid_t()
        return posix_spawn(&pid, program ?? "/proc/self/exe", &actions, &attributes, argv, variables) == 0 ? pid : nil
    }
}
