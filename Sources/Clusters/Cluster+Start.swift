import Glibc

extension Cluster {
    @available(*, noasync)
    func start(within limit: Limit) throws(ClusterError) -> Started {
        let user = try User.toRun(directory)
        try makeDirectory(for: user)
        try checkReach(of: user, within: limit)
        return try locked(for: user, within: limit) { () throws(ClusterError) in
            try checkVersion()
            if try awaitServer(within: limit) { return .alreadyRunning }
            let isNew = !Files.exists(data)
            if isNew { try create(as: user, within: limit) }
            guard let processes else { throw .damaged(directory: directory, reason: "the file name is missing") }
            try clearRemains(of: processes, within: limit)
            try configure(for: user)
            try launch(as: user, processes, within: limit)
            return isNew ? .created : .reused
        }
    }

    // MARK: The directory

    private func makeDirectory(for user: User) throws(ClusterError) {
        if let names = Files.list(directory) {
            guard names.contains(Self.lockName) || names.allSatisfy({ $0 == "lost+found" }) else {
                throw .foreignDirectory(directory)
            }
        } else if errno != ENOENT {
            guard errno == EACCES, let owner = Files.status(directory)?.owner else {
                throw Files.trouble(with: directory)
            }
            throw .belongsToAnother(directory: directory, user: User.name(of: owner))
        }
        try Files.makeParents(of: directory)
        try Files.makePrivate(directory, for: user)
    }

    private func checkReach(of user: User, within limit: Limit) throws(ClusterError) {
        guard !user.isSelf else { return }
        // Asked as that user, because modes alone do not tell: there are access lists and read-only mounts.
        let answer = try user.run("test", ["-x", resolved], within: limit)
        switch answer.ending {
        case .exited(0): return
        case .exited(1):
            let parent = Files.firstClosed(above: resolved, to: user) ?? "one of its parents"
            throw .closedParent(directory: directory, parent: parent, user: user.name)
        case .stopped where limit.isCancelled: throw .cancelled
        case .exited, .signalled, .stopped: throw .failed(step: "Changing to user \(user.name)", log: answer.lines)
        }
    }

    private func checkVersion() throws(ClusterError) {
        guard Files.exists(data) else { return }
        guard let found = Files.read(data + "/PG_VERSION")?.split(whereSeparator: \.isWhitespace).first else {
            throw .damaged(directory: directory, reason: "data/PG_VERSION cannot be read")
        }
        guard found == String(binaries.major) else {
            throw .otherMajor(directory: directory, found: String(found), have: binaries.major)
        }
    }

    // MARK: Before the server

    /// True when a server runs and is ready; waits for one that is starting or stopping.
    private func awaitServer(within limit: Limit) throws(ClusterError) -> Bool {
        while let server {
            if server.status == .ready { return true }
            try limit.check(or: stillStarting(from: 0))
            usleep(10_000)
        }
        return false
    }

    /// Makes the data directory beside its final place: a creation cut short leaves nothing that looks like a cluster.
    private func create(as user: User, within limit: Limit) throws(ClusterError) {
        let draft = directory + "/data.new"
        try delete(draft, within: limit)
        let name = "millrace-" + String(UInt64.random(in: .min ... .max), radix: 36)
        try Files.replace(directory + "/name", with: name + "\n", owner: user, in: directory)
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
        guard rename(draft, data) == 0 else { throw Files.trouble(with: directory) }
    }

    private func step(_ name: String, _ child: Child, _ limit: Limit) throws(ClusterError) {
        if child.succeeded { return }
        if limit.isCancelled { throw .cancelled }
        if isDiskFull(child.output) { throw .diskFull(directory: directory) }
        if child.ending == .stopped {
            throw .late(step: name, advice: "Is the machine very busy? Start again.", log: child.lines)
        }
        throw .failed(step: name, log: child.lines)
    }

    private func isDiskFull(_ output: String) -> Bool {
        output.contains("No space left on device") || output.contains("Disk quota exceeded") || Files.isFull(directory)
    }

    /// A server that was killed leaves its children, which end by themselves unless stuck, and files that name its pid.
    private func clearRemains(of processes: Processes, within limit: Limit) throws(ClusterError) {
        let patience = Limit(.seconds(5))
        var orphans = processes.all()
        while !orphans.isEmpty {
            // They write nothing without their postmaster that recovery would not mend.
            if patience.isOver { orphans.forEach { kill($0, SIGKILL) } }
            try limit.check(
                or: .late(
                    step: "Waiting for the processes of a killed server",
                    advice: "Processes \(orphans.map(String.init).joined(separator: ", ")) do not end. Start again.",
                    log: []))
            usleep(10_000)
            orphans = processes.all()
        }
        let pidFile = data + "/postmaster.pid"
        // Postgres itself sees that a dead pid is stale, and needs the file for that; a living stranger fools it.
        if let pid = Files.read(pidFile).flatMap(PidFile.init)?.pid, kill(pid, 0) == 0 || errno == EPERM {
            unlink(pidFile)
        }
        let socket = "\(SocketPlace(directory: resolved, port: port).current)/.s.PGSQL.\(port)"
        unlink(socket)
        unlink(socket + ".lock")
    }

    private func configure(for user: User) throws(ClusterError) {
        let place = try SocketPlace(directory: resolved, port: port).prepare(for: user)
        let configuration = Configuration(settings, socketDirectory: place)
        try Files.replace(data + "/postgresql.conf", with: configuration.text, owner: user, in: directory)
        if let size = Files.status(log)?.size, size > 10 << 20 { rename(log, log + ".1") }
    }

    // MARK: The server

    private func launch(as user: User, _ processes: Processes, within limit: Limit) throws(ClusterError) {
        while true {
            let before = Files.status(log)?.size ?? 0
            let options = "-c port=\(port) -c cluster_name=\(processes.name)"
            // Far beyond our deadline, which ends the waiting; the server then goes on without pg_ctl.
            let arguments = ["start", "-D", data, "-l", log, "-o", options, "-w", "-t", "86400", "-s"]
            let child = try user.run(binaries.program("pg_ctl"), arguments, within: limit)
            if child.succeeded { return }
            if limit.isCancelled {
                try? stopServer(.immediate, within: Limit(.seconds(10)))  // the caller hears of the cancellation
                throw .cancelled
            }
            let news = Files.read(log, from: before) ?? ""
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
            advice: "It may be recovering, and goes on by itself: start again to wait for it.",
            log: lastLines(of: Files.tail(log, from: offset)))
    }
}
