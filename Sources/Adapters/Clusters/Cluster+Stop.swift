import Glibc

extension Cluster {
    @available(*, noasync)
    func stop(_ mode: Stop, within limit: WorkDeadline) throws(ClusterError) {
        guard try isOurs() else { return }
        try locked(for: try User.toRun(directory), within: limit) { () throws(ClusterError) in
            try stopServer(mode, within: limit)
        }
    }

    /// Signals the server and waits for it and its children; the caller holds the lock.
    @available(*, noasync)
    func stopServer(_ mode: Stop, within limit: WorkDeadline) throws(ClusterError) {
        guard let processes else { return }
        // A server that has just been launched has no pid file yet; all processes may be told to crash, not to be smart.
        let told = mode == .immediate ? processes.all() : [server?.pid].compactMap(\.self)
        for pid in told where kill(pid, mode.signal) != 0 && errno != ESRCH {
            throw ClusterFiles.trouble(with: directory)
        }
        while !processes.all().isEmpty {
            try limit.check(
                or: .late(step: "Stopping Postgres", advice: mode.advice, log: lastLines(of: ClusterFiles.tail(log))))
            usleep(10_000)
        }
    }

    @available(*, noasync)
    func remove(within limit: WorkDeadline) throws(ClusterError) {
        guard ClusterFiles.exists(directory) else { return }
        guard try isOurs() else { throw .foreignDirectory(directory) }
        try locked(for: try User.toRun(directory), within: limit) { () throws(ClusterError) in
            try stopServer(.immediate, within: limit)
            SocketPlace(directory: resolved, port: port).forget()
            try delete(directory, within: limit)
        }
    }

    @available(*, noasync)
    func delete(_ path: String, within limit: WorkDeadline) throws(ClusterError) {
        guard ClusterFiles.exists(path) else { return }
        let child = try ProgramRun.run("rm", ["-rf", "--", path], within: limit)
        if limit.isCancelled { throw .cancelled }
        if !child.succeeded { throw .failed(step: "Deleting \(path)", log: child.lines) }
    }

    private func isOurs() throws(ClusterError) -> Bool {
        if ClusterFiles.exists("\(directory)/\(Self.lockName)") { return true }
        if errno == EACCES { throw closed() }
        return false
    }

    /// The current `errno` says that we may not look into the directory.
    func closed() -> ClusterError {
        guard let owner = ClusterFiles.status(directory)?.owner else { return ClusterFiles.trouble(with: directory) }
        return .belongsToAnother(directory: directory, user: User.name(of: owner))
    }
}

extension Cluster.Stop {
    fileprivate var signal: Int32 {
        switch self {
        case .smart: SIGTERM
        case .fast: SIGINT
        case .immediate: SIGQUIT
        }
    }

    fileprivate var advice: String {
        switch self {
        case .smart: "It waits until all sessions have ended. Close them, or stop it with mode fast."
        case .fast: "It may be writing a lot to a slow disk. Wait, or stop it with mode immediate."
        case .immediate: "Its processes do not end. Look at the log."
        }
    }
}
