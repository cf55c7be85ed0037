import Glibc

extension Cluster {
    @available(*, noasync)
    func start(within limit: WorkDeadline) throws(ClusterError) -> Started {
        try checkName()
        let user = try User.toRun(directory)
        try makeDirectory(for: user)
        try checkReach(of: user, within: limit)
        return try locked(for: user, within: limit) { () throws(ClusterError) in
            try checkVersion()
            if try settle(within: limit) { return .alreadyRunning }
            let isNew = !ClusterFiles.exists(data)
            if isNew { try create(as: user, within: limit) }
            guard let processes else { throw .damaged(directory: directory, reason: "the file name is missing") }
            clearRemains()
            try configure(for: user)
            try launch(as: user, processes, within: limit)
            return isNew ? .created : .reused
        }
    }

    // MARK: The directory

    /// pg_ctl hands the path to a shell in double quotes, and a comma separates socket directories.
    private func checkName() throws(ClusterError) {
        guard let character = resolved.first(where: { "\"$`\\,\n".contains($0) }) else { return }
        throw .unusableDirectory(
            directory, reason: "Postgres cannot work with \(character.debugDescription) in its path")
    }

    private func makeDirectory(for user: User) throws(ClusterError) {
        if let names = ClusterFiles.list(directory) {
            guard names.contains(Self.lockName) || names.allSatisfy({ $0 == "lost+found" }) else {
                throw .foreignDirectory(directory)
            }
        } else if errno != ENOENT {
            throw errno == EACCES ? closed() : ClusterFiles.trouble(with: directory)
        }
        try ClusterFiles.makeParents(of: directory)
        try ClusterFiles.makePrivate(resolved, for: user)
    }

    private func checkReach(of user: User, within limit: WorkDeadline) throws(ClusterError) {
        guard !user.isSelf else { return }
        // Asked as that user, because modes alone do not tell: there are access lists and read-only mounts.
        let answer = try user.run("test", ["-x", resolved], within: limit)
        switch answer.ending {
        case .exited(0): return
        case .exited(1):
            let parent = ClusterFiles.firstClosed(above: resolved, to: user) ?? "one of its parents"
            throw .closedParent(directory: directory, parent: parent, user: user.name)
        case .stopped where limit.isCancelled: throw .cancelled
        case .exited, .signalled, .stopped: throw .failed(step: "Changing to user \(user.name)", log: answer.lines)
        }
    }

    private func checkVersion() throws(ClusterError) {
        guard ClusterFiles.exists(data) else { return }
        guard let found = ClusterFiles.read(data + "/PG_VERSION")?.split(whereSeparator: \.isWhitespace).first else {
            throw .damaged(directory: directory, reason: "data/PG_VERSION cannot be read")
        }
        guard found == String(binaries.major) else {
            throw .otherMajor(directory: directory, found: String(found), have: binaries.major)
        }
    }

    // MARK: Before the server

    /// True when a server runs and is ready; false when no process of this cluster is left.
    ///
    /// Waits for a server that is starting or stopping. One that was killed leaves its children, which end by
    /// themselves unless stuck.
    private func settle(within limit: WorkDeadline) throws(ClusterError) -> Bool {
        var patience: WorkDeadline?
        while let processes {
            if let server {
                patience = nil
                if server.status == .ready {
                    try checkPort(of: server)
                    if try answers(within: limit) { return true }
                }
                try limit.check(or: stillStarting(from: 0))
            } else {
                let orphans = processes.all()
                if orphans.isEmpty { return false }
                let until = patience ?? WorkDeadline(.seconds(5))
                patience = until
                // They write nothing without their postmaster that recovery would not mend.
                if until.isOver { orphans.forEach { kill($0, SIGKILL) } }
                try limit.check(or: leftOver(orphans))
            }
            usleep(10_000)
        }
        return false
    }

    /// A pid file says ready until its server is gone; one that was just killed, or hangs, does not answer any more.
    private func answers(within limit: WorkDeadline) throws(ClusterError) -> Bool {
        let program = binaries.program("pg_isready")
        guard ClusterFiles.isProgram(program) else { return true }  // it comes with the clients, which may be elsewhere
        let place = SocketPlace(directory: resolved, port: port).current
        let child = try ProgramRun.run(program, ["-q", "-t", "5", "-h", place, "-p", "\(port)"], within: limit)
        return child.succeeded
    }

    private func leftOver(_ orphans: [pid_t]) -> ClusterError {
        let list = orphans.map(String.init).joined(separator: ", ")
        return .late(
            step: "Waiting for the processes of a killed server", advice: "Still there: \(list). Start again.", log: [])
    }

    private func checkPort(of server: PidFile) throws(ClusterError) {
        guard let other = server.port, other != port else { return }
        throw .unusableDirectory(directory, reason: "its server runs with port \(other), not \(port); stop it first")
    }

    /// Creates the data directory beside its final place, so that an interrupted creation leaves nothing that looks like a cluster.
    private func create(as user: User, within limit: WorkDeadline) throws(ClusterError) {
        let draft = directory + "/data.new"
        try delete(draft, within: limit)
        let name = "millrace-" + String(UInt64.random(in: .min ... .max), radix: 36)
        try ClusterFiles.replace(directory + "/name", with: name + "\n", owner: user, in: directory)
        if let primary {
            try copy(primary, to: draft, as: user, within: limit)
            guard rename(draft, data) == 0 else { throw ClusterFiles.trouble(with: directory) }
            return
        }
        let options = [
            "--pgdata=\(draft)", "--username=millrace", "--auth-local=trust", "--auth-host=reject",
            "--encoding=UTF8", "--locale=C", "--no-instructions",
        ]
        try step(
            "Creating the cluster (initdb)", try user.run(binaries.program("initdb"), options, within: limit), limit)
        // Single-user mode, so that no half-made cluster ever accepts connections.
        let single = ["--single", "-D", draft, "-c", "exit_on_error=on", "template1"]
        let creation = try user.run(
            binaries.program("postgres"), single, input: "create database millrace;\n", within: limit)
        try step("Creating the database millrace", creation, limit)
        guard rename(draft, data) == 0 else { throw ClusterFiles.trouble(with: directory) }
    }

    private func copy(
        _ primary: (directory: String, port: Int), to draft: String, as user: User, within limit: WorkDeadline
    ) throws(ClusterError) {
        let place = SocketPlace(
            directory: ClusterFiles.resolved(primary.directory) ?? primary.directory, port: primary.port)
        let options = [
            "--pgdata=\(draft)", "--host=\(place.current)", "--port=\(primary.port)", "--username=millrace",
            "--no-password",
            "--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast",
        ]
        try step(
            "Copying the primary (pg_basebackup)",
            try user.run(binaries.program("pg_basebackup"), options, within: limit),
            limit)
    }

    private func step(_ name: String, _ child: ProgramRun, _ limit: WorkDeadline) throws(ClusterError) {
        if child.succeeded { return }
        if limit.isCancelled { throw .cancelled }
        if isDiskFull(child.output) { throw .diskFull(directory: directory) }
        if child.ending == .stopped {
            throw .late(step: name, advice: "Is the machine very busy? Start again.", log: child.lines)
        }
        throw .failed(step: name, log: child.lines)
    }

    private func isDiskFull(_ output: String) -> Bool {
        output.contains("No space left on device") || output.contains("Disk quota exceeded")
            || ClusterFiles.isFull(directory)
    }

    /// Removes the files that name the pid of a server that is gone.
    private func clearRemains() {
        let pidFile = data + "/postmaster.pid"
        // Postgres itself sees that a dead pid is stale, and needs the file for that; a living stranger fools it.
        if let pid = ClusterFiles.read(pidFile).flatMap(PidFile.init)?.pid, kill(pid, 0) == 0 || errno == EPERM {
            unlink(pidFile)
        }
        let socket = "\(SocketPlace(directory: resolved, port: port).current)/.s.PGSQL.\(port)"
        unlink(socket)
        unlink(socket + ".lock")
    }

    private func configure(for user: User) throws(ClusterError) {
        let place = try SocketPlace(directory: resolved, port: port).prepare(for: user)
        let configuration = Configuration(settings, socketDirectory: place)
        try ClusterFiles.replace(data + "/postgresql.conf", with: configuration.text, owner: user, in: directory)
        if let size = ClusterFiles.status(log)?.size, size > 10 << 20 { rename(log, log + ".1") }
    }

    // MARK: The server

    private func launch(as user: User, _ processes: Processes, within limit: WorkDeadline) throws(ClusterError) {
        while true {
            let before = ClusterFiles.status(log)?.size ?? 0
            let options = "-c port=\(port) -c cluster_name=\(processes.name)"
            // Much longer than our own deadline, which ends the wait; the server then continues without pg_ctl.
            let arguments = ["start", "-D", data, "-l", log, "-o", options, "-w", "-t", "86400", "-s"]
            let child = try user.run(binaries.program("pg_ctl"), arguments, within: limit)
            if child.succeeded { return }
            if limit.isCancelled {
                try? stopServer(.immediate, within: WorkDeadline(.seconds(10)))  // the caller hears of the cancellation
                throw .cancelled
            }
            let news = ClusterFiles.read(log, from: before) ?? ""
            if child.ending == .stopped { throw stillStarting(from: before) }
            // A killed server's child may hold its memory for a moment after it has lost its name.
            if news.contains("is still in use") || news.contains("lock file \"postmaster.pid\" already exists"),
                !limit.isOver
            {
                usleep(50_000)
                continue
            }
            if isDiskFull(news + child.output) { throw .diskFull(directory: directory) }
            throw .failed(step: "Starting Postgres", log: news.isEmpty ? child.lines : lastLines(of: news))
        }
    }

    private func stillStarting(from offset: Int) -> ClusterError {
        .late(
            step: "Starting Postgres",
            advice: "It may be recovering, and will finish by itself: start again to wait for it.",
            log: lastLines(of: ClusterFiles.tail(log, from: offset)))
    }
}
