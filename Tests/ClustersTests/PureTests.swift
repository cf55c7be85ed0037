import Testing

@testable import Clusters

@Suite struct `the answer of postgres --version` {
    @Test(arguments: [
        ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", 15), ("postgres (PostgreSQL) 19devel", 19),
        ("postgres (PostgreSQL) 9.6.24", 9),
    ])
    func `names the major version`(answer: String, major: Int) {
        #expect(Cluster.Binaries.major(in: answer) == major)
    }

    @Test func `may be that of another program`() {
        #expect(Cluster.Binaries.major(in: "busybox 1.2 (multi-call)") == nil)
    }
}

@Suite struct `a pid file` {
    static let ready = "123\n/d/data\n1700000000\n5432\n/d/socket\n\n  5432001   32768\nready   \n"

    @Test func `tells who runs and whether it is ready`() {
        #expect(PidFile(Self.ready)?.pid == 123)
        #expect(PidFile(Self.ready)?.status == .ready)
        #expect(PidFile(Self.ready)?.port == 5432)
        #expect(PidFile("77\n/d/data\n1700000000\n5432\n/d/socket\n\n  1 2\nstopping\n")?.status == .stopping)
    }

    @Test func `is that of a starting server while it is being written`() {
        #expect(PidFile("123\n/d/data\n")?.status == .starting)
    }

    @Test(arguments: ["", "\n", "nonsense\n", "-1\n", "0\n"])
    func `that makes no sense names nobody`(text: String) {
        #expect(PidFile(text) == nil)
    }
}

@Suite struct `the processes of a cluster` {
    let processes = Processes(name: "millrace-abc")

    @Test func `are told by the name in their command lines`() {
        let server = "/usr/lib/postgresql/15/bin/postgres\0-D\0/d/data\0-c\0port=5432\0-c\0cluster_name=millrace-abc\0"
        #expect(processes.isOurs(commandLine: server))
        #expect(processes.isOurs(commandLine: "postgres: millrace-abc: checkpointer \0"))
        let shell =
            "/bin/sh\0-c\0exec \"/bin/postgres\" -D \"/d\" -c port=1 -c cluster_name=millrace-abc < \"/dev/null\"\0"
        #expect(processes.isOurs(commandLine: shell))
    }

    @Test(arguments: [
        "", "bash|", "postgres: millrace-abcd: checkpointer |", "postgres: checkpointer |",
        "vi|cluster_name=millrace-abc|", "/bin/postgres|-D|/d/data|",
    ])
    func `are not taken for others`(arguments: String) {
        let commandLine = String(arguments.map { $0 == "|" ? "\0" : $0 })  // a NUL would spoil the test's report
        #expect(!processes.isOurs(commandLine: commandLine))
    }
}

@Suite struct `the configuration` {
    @Test func `lets the caller choose, except what we rely on`() {
        let configuration = Configuration(
            ["fsync": "off", "work_mem": "8MB", "listen_addresses": "*"], socketDirectory: "/s")
        #expect(configuration.settings["fsync"] == "off")
        #expect(configuration.settings["work_mem"] == "8MB")
        #expect(configuration.settings["listen_addresses"] == "")
        #expect(configuration.text.contains("unix_socket_directories = '/s'\n"))
    }

    @Test func `quotes what Postgres would misread`() {
        #expect(Configuration.quoted(#"it's a \ "#) == #"'it''s a \\ '"#)
        #expect(Configuration.quoted("two\nlines") == #"'two\nlines'"#)
    }
}

@Suite struct `a socket path` {
    @Test func `fits up to 107 bytes`() {
        let tail = "/.s.PGSQL.5432".utf8.count
        #expect(SocketPlace.fits(String(repeating: "x", count: 107 - tail), port: 5432))
        #expect(!SocketPlace.fits(String(repeating: "x", count: 108 - tail), port: 5432))
        #expect(!SocketPlace.fits(String(repeating: "ü", count: 50), port: 5432))
    }

    @Test func `stands encoded in the connection string`() {
        let cluster = Cluster(
            directory: "/nowhere/a b+c%d/", binaries: .init(directory: "/x", major: 15), port: 5433)
        #expect(
            cluster.url(database: "my db", user: "o'neil")
                == "postgresql://o%27neil@/my%20db?host=%2Fnowhere%2Fa%20b%2Bc%25d%2Fsocket&port=5433")
        #expect(cluster.url().hasPrefix("postgresql://millrace@/millrace?"))
    }
}

@Suite struct `an error` {
    @Test func `ends with the last lines of the log`() {
        let error = ClusterError.failed(step: "Starting Postgres", log: ["FATAL:  no", "LOG:  shut down"])
        #expect("\(error)" == "Starting Postgres failed. Its last lines:\n    FATAL:  no\n    LOG:  shut down")
    }

    @Test func `says which programs the data need`() {
        let error = ClusterError.otherMajor(directory: "/d", found: "13", have: 15)
        #expect("\(error)".contains("MILLRACE_POSTGRES_BIN"))
        #expect("\(error)".contains("/usr/lib/postgresql/13/bin"))
    }
}
