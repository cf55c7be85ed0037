import Glibc
import TestSupport
import Testing

@testable import Clusters

@Suite struct `a private cluster` {
    @Test func `is created, used, stopped and used again`() async throws {
        try await withUnstartedCluster { cluster in
            #expect(!cluster.isRunning())
            #expect(try await cluster.start(deadline: .ample) == .created)
            #expect(cluster.isRunning())
            let facts = """
                select current_user, rolsuper, current_database(), current_setting('server_encoding'),
                       current_setting('listen_addresses'), current_setting('fsync')
                  from pg_roles where rolname = current_user
                """
            #expect(try await cluster.ask(facts) == "millrace|t|millrace|UTF8||on")
            _ = try await cluster.ask("create table kept as select 7 as n")

            #expect(try await cluster.start(deadline: .ample) == .alreadyRunning)
            let url = cluster.url()
            try await cluster.stop(.smart, deadline: .ample)
            #expect(!cluster.isRunning())
            #expect(cluster.remains.isEmpty)

            #expect(try await cluster.start(deadline: .ample) == .reused)
            #expect(cluster.url() == url)
            #expect(try await cluster.ask("select n from kept") == "7")
        }
    }

    @Test func `is open to nobody else`() async throws {
        try await withUnstartedCluster { cluster in
            _ = try await cluster.start(deadline: .ample)
            let status = try #require(ClusterFiles.status(cluster.directory))
            #expect(status.permissions == 0o700)
            #expect(ClusterFiles.status(cluster.socketDirectory)?.permissions == 0o700)
            #expect(geteuid() != 0 || status.owner != 0)
        }
    }

    @Test func `may have blanks, quotes and letters of all kinds in its path`() async throws {
        try await withUnstartedCluster(under: "it's a größe; & (b)") { cluster in
            _ = try await cluster.start(deadline: .ample)
            #expect(try await cluster.ask("select 1") == "1")
        }
    }

    @Test func `takes settings, and takes new ones at the next start`() async throws {
        try await withStoppedCluster(settings: ["work_mem": "7MB", "application_name": "it's"]) { cluster in
            _ = try await cluster.start(deadline: .ample)
            #expect(try await cluster.ask("show work_mem") == "7MB")
            try await cluster.stop(.fast, deadline: .ample)
            let other = Cluster(
                directory: cluster.directory, binaries: cluster.binaries, settings: ["work_mem": "9MB"])
            _ = try await other.start(deadline: .ample)
            #expect(try await other.ask("show work_mem") == "9MB")
        }
    }

    @Test func `starts once when two start it at the same time`() async throws {
        try await withUnstartedCluster { cluster in
            async let first = cluster.start(deadline: .ample)
            async let second = cluster.start(deadline: .ample)
            let outcomes = try await [first, second]
            #expect(outcomes.contains(.created))
            #expect(outcomes.contains(.alreadyRunning))
        }
    }

    @Test func `with a long path gets a short socket that stays where it is`() async throws {
        let long = (1...3).map { "\($0)" + String(repeating: "x", count: 60) }.joined(separator: "/")
        try await withUnstartedCluster(under: long) { cluster in
            _ = try await cluster.start(deadline: .ample)
            let place = cluster.socketDirectory
            #expect(place.hasPrefix("/tmp/millrace-"))
            #expect(try await cluster.ask("select 1") == "1")
            try await cluster.stop(.fast, deadline: .ample)
            _ = try await cluster.start(deadline: .ample)
            #expect(cluster.socketDirectory == place)

            try await cluster.stop(.fast, deadline: .ample)
            rmdir(place)  // as a reboot does
            _ = try await cluster.start(deadline: .ample)
            #expect(try await cluster.ask("select 1") == "1")

            let last = cluster.socketDirectory
            try await cluster.remove(deadline: .ample)
            #expect(!ClusterFiles.exists(last))
        }
    }

    @Test func `shortens a long log at the next start`() async throws {
        try await withStoppedCluster { cluster in
            try await run("truncate", ["-s", "11M", cluster.log])
            _ = try await cluster.start(deadline: .ample)
            let size = try #require(ClusterFiles.status(cluster.log)?.size)
            #expect(size < 1 << 20)
            #expect(ClusterFiles.exists(cluster.log + ".1"))
        }
    }
}

@Suite struct `as root` {
    @Test func `the cluster of another user goes on under that user`() async throws {
        guard geteuid() == 0 else { try Test.cancel("only root runs Postgres as another user") }
        try await withStoppedCluster { cluster in
            try await run("chown", ["-R", "nobody:", cluster.directory])
            #expect(try await cluster.start(deadline: .ample) == .reused)
            let server = try #require(cluster.server)
            #expect(ClusterFiles.status("/proc/\(server.pid)")?.owner == ClusterFiles.status(cluster.data)?.owner)
            #expect(try await cluster.ask("select 1") == "1")
        }
    }
}

@Suite struct `after a crash` {
    @Test func `a killed server is started again and has lost nothing`() async throws {
        try await withStoppedCluster { cluster in
            _ = try await cluster.start(deadline: .ample)
            _ = try await cluster.ask("create table kept as select 7 as n")
            try cluster.killServer()
            // Its children may still live here, and its pid file does.
            #expect(try await cluster.start(deadline: .ample) == .reused)
            #expect(try await cluster.ask("select n from kept") == "7")
        }
    }

    private func stranger(of cluster: Cluster) async throws -> pid_t {
        let (program, arguments) = try User.toRun(cluster.directory).command("sh", ["-c", "sleep 300 & echo $!"])
        return try #require(pid_t(try await run(program, arguments).lines.last ?? ""))
    }

    @Test func `a stale pid file does not stop a start`() async throws {
        try await withStoppedCluster { cluster in
            _ = try await cluster.start(deadline: .ample)
            let text = try #require(ClusterFiles.read(cluster.data + "/postmaster.pid"))
            try await cluster.stop(.immediate, deadline: .ample)
            // 1. The machine restarts; 2. a process of the same user gets the dead server's pid; 3. Postgres believes in it.
            let stranger = try await stranger(of: cluster)
            defer { kill(stranger, SIGKILL) }
            let stale = "\(stranger)" + text.drop { $0.isNumber }
            try cluster.write(stale, to: "data/postmaster.pid")
            try cluster.write(stale, to: "socket/.s.PGSQL.5432.lock")
            #expect(!cluster.isRunning())
            #expect(try await cluster.start(deadline: .ample) == .reused)
        }
    }

    @Test func `a creation that was cut short is started again`() async throws {
        try await withUnstartedCluster { cluster in
            // As soon as the directory is ours, which takes longer on a busy machine, and before initdb is done.
            for turn in 1...100 where !ClusterFiles.exists(cluster.directory + "/" + Cluster.lockName) {
                _ = await failure(starting: cluster, deadline: .milliseconds(150 * turn))
            }
            #expect(!ClusterFiles.exists(cluster.data))
            try await run("mkdir", ["-p", cluster.directory + "/data.new/base"])
            #expect(try await cluster.start(deadline: .ample) == .created)
        }
    }

    @Test func `a start past its deadline goes on, and the next one waits for it`() async throws {
        try await withStoppedCluster { cluster in
            for milliseconds in [10, 30, 60] {  // before, during and after the launch
                _ = await failure(starting: cluster, deadline: .milliseconds(milliseconds))
                #expect(try await cluster.start(deadline: .ample) != .created)
                #expect(try await cluster.ask("select 1") == "1")
                try await cluster.stop(.immediate, deadline: .ample)
            }
        }
    }

    @Test func `a cancelled start leaves nothing running`() async throws {
        try await withStoppedCluster { cluster in
            for _ in 0..<20 {
                let start = Task { try await cluster.start(deadline: .ample) }
                // The launch has begun, and takes a tenth of a second; on a busy machine it can be through by the cancel.
                while cluster.remains.isEmpty { await Task.yield() }
                start.cancel()
                switch await start.result {
                case .success: try await cluster.stop(.fast, deadline: .ample)
                case .failure(let error):
                    #expect(error as? ClusterError == .cancelled)
                    #expect(cluster.remains.isEmpty)
                    return
                }
            }
            Issue.record("every start was through before its cancel came")
        }
    }
}

@Suite struct `stopping` {
    /// A session that stays until it is ended.
    private func session(_ cluster: Cluster) -> Task<ProgramRun, any Error> {
        Task {
            let options = ["-X", "-d", cluster.url(), "-c", "select pg_sleep(100)"]
            return try await run(cluster.binaries.program("psql"), options)
        }
    }

    private func seesSleeper(_ cluster: Cluster) async throws -> Bool {
        try await cluster.ask("select count(*) from pg_stat_activity where wait_event = 'PgSleep'") == "1"
    }

    @Test(arguments: [Cluster.Stop.fast, .immediate])
    func `ends open sessions`(mode: Cluster.Stop) async throws {
        try await withStoppedCluster { cluster in
            _ = try await cluster.start(deadline: .ample)
            let sleeper = session(cluster)
            while try await !seesSleeper(cluster) {}
            try await cluster.stop(mode, deadline: .ample)
            #expect(try await sleeper.value.ending == .exited(2))
            #expect(cluster.remains.isEmpty)
        }
    }

    @Test func `in smart mode waits for sessions, and says so at its deadline`() async throws {
        try await withStoppedCluster { cluster in
            _ = try await cluster.start(deadline: .ample)
            let sleeper = session(cluster)
            while try await !seesSleeper(cluster) {}
            do throws(ClusterError) {
                try await cluster.stop(.smart, deadline: .milliseconds(300))
                Issue.record("it did not wait")
            } catch {
                #expect("\(error)".contains("mode fast"))
            }
            try await cluster.stop(.fast, deadline: .ample)
            _ = try await sleeper.value
        }
    }

    @Test func `what does not run is no error`() async throws {
        try await withUnstartedCluster { cluster in
            try await cluster.stop(.fast, deadline: .ample)
            #expect(!ClusterFiles.exists(cluster.directory))
        }
    }
}

@Suite struct `a start is refused` {
    @Test func `in a directory with files of others`() async throws {
        try await withUnstartedCluster { cluster in
            try await run("mkdir", [cluster.directory])
            try await run("touch", [cluster.directory + "/letter.txt"])
            #expect(await failure(starting: cluster) == .foreignDirectory(cluster.directory))
            #expect(ClusterFiles.list(cluster.directory) == ["letter.txt"])
            try await run("rm", ["-rf", cluster.directory])
        }
    }

    @Test func `where a file stands`() async throws {
        try await withUnstartedCluster { cluster in
            try await run("touch", [cluster.directory])
            let error = await failure(starting: cluster)
            #expect(error == .unusableDirectory(cluster.directory, reason: "Not a directory"))
            unlink(cluster.directory)
        }
    }

    @Test func `with data of another version`() async throws {
        try await withStoppedCluster { cluster in
            try cluster.write("13\n", to: "data/PG_VERSION")
            #expect(
                await failure(starting: cluster)
                    == .otherMajor(directory: cluster.directory, found: "13", have: cluster.binaries.major))
        }
    }

    @Test func `with another port than the running server's`() async throws {
        try await withStoppedCluster { cluster in
            _ = try await cluster.start(deadline: .ample)
            let other = Cluster(directory: cluster.directory, binaries: cluster.binaries, port: 5433)
            let error = await failure(starting: other)
            #expect(error.map { "\($0)" }?.contains("port 5432, not 5433") == true)
        }
    }

    @Test func `where a shell would read something else in the path`() async throws {
        try await withUnstartedCluster(under: "a$HOME") { cluster in
            let error = await failure(starting: cluster)
            #expect(error.map { "\($0)" }?.contains("Postgres cannot work with") == true)
            #expect(!ClusterFiles.exists(cluster.directory))
        }
    }

    @Test func `with settings that Postgres refuses, and its log says why`() async throws {
        try await withStoppedCluster(settings: ["no_such_setting": "1"]) { cluster in
            let error = await failure(starting: cluster)
            #expect(error.map { "\($0)" }?.contains("no_such_setting") == true)
            #expect(cluster.remains.isEmpty)
        }
    }

    @Test func `below a directory that the user of Postgres cannot pass`() async throws {
        guard geteuid() == 0 else { try Test.cancel("only root runs Postgres as another user") }
        try await withDirectory { directory in
            let binaries = try Cluster.Binaries.locate(environment: [:])
            try await withCluster(Cluster(directory: "\(directory)/closed/cluster", binaries: binaries)) { cluster in
                mkdir("\(directory)/closed", 0o700)
                let error = await failure(starting: cluster)
                #expect(error.map { "\($0)" }?.contains("chmod o+x \(directory)/closed") == true)
                chmod("\(directory)/closed", 0o711)
                let started = try await cluster.start(deadline: .ample)
                #expect(started == .created)
            }
        }
    }
}

@Suite struct `a full disk` {
    @Test func `is named when a cluster is created, and when it starts`() async throws {
        guard geteuid() == 0 else { try Test.cancel("mounting a small disk needs root") }
        try await withDirectory { directory in
            let mount = try await run("mount", ["-t", "tmpfs", "-o", "size=4m,mode=755", "tmpfs", directory])
            guard mount.succeeded else { try Test.cancel("no disk can be mounted here: \(mount.output)") }
            let binaries = try Cluster.Binaries.locate(environment: [:])
            let cluster = Cluster(directory: "\(directory)/cluster", binaries: binaries)
            do {
                try await withCluster(cluster) { cluster in
                    #expect(await failure(starting: cluster) == .diskFull(directory: cluster.directory))
                    #expect(!ClusterFiles.exists(cluster.data))

                    try await run("mount", ["-o", "remount,size=300m", directory])
                    #expect(try await cluster.start(deadline: .ample) == .created)
                    try await cluster.stop(.fast, deadline: .ample)
                    unlink(cluster.log)  // its last block would have room for the reason
                    try await run("sh", ["-c", "cat /dev/zero > \(directory)/filler || true"])
                    #expect(await failure(starting: cluster) == .diskFull(directory: cluster.directory))

                    unlink("\(directory)/filler")
                    #expect(try await cluster.start(deadline: .ample) == .reused)
                }
            } catch {
                try await run("umount", ["-l", directory])
                throw error
            }
            try await run("umount", [directory])
        }
    }
}
