import Clusters
import Glibc
import Postgres
import Synchronization
import TestSupport
import Testing

@Suite struct ConnectionTests {
    @Test func `a refusal carries its code, sentence, detail, hint and constraint`() async throws {
        try await withConnection(.empty) { connection in
            try await connection.run("create table public.t (n int constraint small check (n < 3))")
            let check = try await connection.refusal(of: "insert into public.t values (5)")
            #expect(check?.sqlState == "23514" && check?.constraint == "small")
            let own = try await connection.refusal(
                of: "do $$ begin raise exception 'no' using errcode = '22023', detail = 'd', hint = 'h'; end $$")
            #expect(own?.sqlState == "22023" && own?.message == "no" && own?.detail == "d" && own?.hint == "h")
            #expect(own?.context?.contains("PL/pgSQL") == true)
            let full = try await connection.refusal(of: "do $$ begin raise disk_full; end $$")
            #expect(full.map { PostgresError.server($0) }?.isShortage == true)
            #expect(full.map { PostgresError.server($0) }.map { $0.isOutage && !$0.outcomeUnknown } == true)
            #expect(try await connection.refusal(of: "select 1/0")?.sqlState == "22012")
            #expect(try await connection.refusal(of: "selec")?.sqlState == "42601")
            #expect(try await connection.int("select 1") == 1)
        }
    }

    @Test func `a statement past its deadline is cancelled on the server too`() async throws {
        try await withDatabase(.empty) { database in
            let connection = try await database.connect()
            let watcher = try await database.connect()
            let process = try await connection.process()
            await #expect(throws: PostgresError.timedOut(after: .milliseconds(100))) {
                try await connection.execute("select pg_sleep(60)", deadline: .milliseconds(100))
            }
            #expect(try await watcher.value("select state from pg_stat_activity where pid = \(process)") == "idle")
            #expect(try await connection.int("select 1") == 1)
            #expect(try await connection.process() == process)
        }
    }

    @Test func `a cancelled task's statement is cancelled on the server too`() async throws {
        try await withDatabase(.empty) { database in
            let connection = try await database.connect()
            let watcher = try await database.connect()
            let process = try await connection.process()
            let task = Task { () -> PostgresError? in
                do throws(PostgresError) {
                    try await connection.execute("select pg_sleep(60)")
                    return nil
                } catch {
                    return error
                }
            }
            try await eventually("the statement runs") {
                try await watcher.bool(
                    "select count(*) = 1 from pg_stat_activity where pid = \(process) and state = 'active'")
            }
            task.cancel()
            #expect(await task.value == .cancelled)
            #expect(try await watcher.value("select state from pg_stat_activity where pid = \(process)") == "idle")
            #expect(try await connection.int("select 1") == 1)
        }
    }

    @Test func `a task that is cancelled already sends nothing`() async throws {
        try await withConnection(.empty) { connection in
            try await connection.run("create table public.t (n int)")
            let error = await Task { () -> PostgresError? in
                withUnsafeCurrentTask { $0?.cancel() }
                do throws(PostgresError) {
                    try await connection.execute("insert into public.t values (1)")
                    return nil
                } catch {
                    return error
                }
            }.value
            #expect(error == .cancelled)
            #expect(try await connection.int("select count(*) from public.t") == 0)
        }
    }

    @Test func `a connection killed under a statement is lost, and stays so`() async throws {
        try await withDatabase(.empty) { database in
            let connection = try await database.connect()
            let killer = try await database.connect()
            let process = try await connection.process()
            let task = Task { () -> PostgresError? in
                do throws(PostgresError) {
                    try await connection.execute("select pg_sleep(60)")
                    return nil
                } catch {
                    return error
                }
            }
            try await eventually("the statement runs") {
                try await killer.bool(
                    "select count(*) = 1 from pg_stat_activity where pid = \(process) and state = 'active'")
            }
            _ = try await killer.value("select pg_terminate_backend(\(process))")
            let error = try #require(await task.value)
            guard case .lost = error else { throw error }
            #expect(error.isOutage && error.outcomeUnknown)
            #expect(await connection.isBroken)
            await #expect(throws: PostgresError.self) { try await connection.execute("select 1") }
        }
    }

    @Test func `a server that is stopped is unreachable, and reached again once it runs`() async throws {
        try await withCluster { cluster in
            let options = ConnectionOptions(location: cluster.url(), connectDeadline: .seconds(5))
            let connection = try await Connection.open(options)
            try await cluster.stop(.immediate, deadline: .seconds(30))
            let lost = try await failure { try await connection.execute("select 1") }
            #expect(lost?.isOutage == true)
            let away = try #require(try await failure { _ = try await Connection.open(options) })
            guard case .unreachable = away else { throw away }
            #expect(away.isOutage && !away.outcomeUnknown)
            _ = try await cluster.start(deadline: .seconds(60))
            #expect(try await Connection.open(options).int("select 1") == 1)
        }
    }

    @Test func `a pipeline is all or nothing`() async throws {
        try await withConnection(.empty) { connection in
            try await connection.run("create table public.t (n int primary key)")
            try await connection.pipeline([
                Statement("insert into public.t values ($1)", [.int4(1)]),
                Statement("insert into public.t values ($1)", [.int4(2)]),
            ])
            #expect(try await connection.int("select count(*) from public.t") == 2)
            let error = try await failure {
                try await connection.pipeline([
                    Statement("insert into public.t values ($1)", [.int4(3)]),
                    Statement("insert into public.t values ($1)", [.int4(1)]),
                    Statement("insert into public.t values ($1)", [.int4(4)]),
                ])
            }
            #expect(error?.sqlState == "23505")
            #expect(try await connection.int("select count(*) from public.t") == 2)
        }
    }

    @Test func `a pipeline past its deadline is cancelled, and its connection can go on`() async throws {
        try await withConnection(.empty) { connection in
            let error = try await failure {
                try await connection.pipeline(
                    [Statement("select 1"), Statement("select pg_sleep(60)"), Statement("select 2")],
                    deadline: .milliseconds(100))
            }
            #expect(error == .timedOut(after: .milliseconds(100)))
            #expect(try await connection.int("select 1") == 1)
        }
    }

    @Test func `COPY takes rows from a source`() async throws {
        try await withConnection(.empty) { connection in
            try await connection.run("create table public.t (n int, s text)")
            let left = Mutex(1000)
            let count = try await connection.copyIn("copy public.t from stdin") {
                let n = left.withLock { left in
                    left -= 1
                    return left
                }
                return n < 0 ? nil : Array("\(n)\t\(String(repeating: "x", count: 1000))\n".utf8)
            }
            #expect(count == 1000)
            #expect(try await connection.int("select count(distinct n) from public.t where length(s) = 1000") == 1000)
        }
    }

    @Test func `a COPY whose source fails leaves nothing, and the connection whole`() async throws {
        struct Dry: Error {}
        try await withConnection(.empty) { connection in
            try await connection.run("create table public.t (n int)")
            let sent = Mutex(0)
            await #expect(throws: Dry.self) {
                _ = try await connection.copyIn("copy public.t from stdin") {
                    let turn = sent.withLock { sent in
                        sent += 1
                        return sent
                    }
                    if turn > 3 { throw Dry() }
                    return Array("\(turn)\n".utf8)
                }
            }
            #expect(try await connection.int("select count(*) from public.t") == 0)
        }
    }

    @Test func `a COPY of bad rows is refused with the server's words`() async throws {
        try await withConnection(.empty) { connection in
            try await connection.run("create table public.t (n int)")
            let sent = Mutex(false)
            let error = try await failure {
                _ = try await connection.copyIn("copy public.t from stdin") {
                    sent.withLock { sent in
                        defer { sent = true }
                        return sent ? nil : Array("nonsense\n".utf8)
                    }
                }
            }
            #expect(error?.sqlState == "22P02")
            #expect(try await connection.int("select count(*) from public.t") == 0)
        }
    }

    @Test func `notifications are heard, in order, from others and from before the wait`() async throws {
        try await withDatabase(.empty) { database in
            let ear = try await database.connect()
            let mouth = try await database.connect()
            try await ear.listen("Weird \"channel\"")
            for word in ["one", "two"] {
                try await mouth.execute("select pg_notify('Weird \"channel\"', $1)", [.text(word)])
            }
            var heard: [String] = []
            while heard.count < 2 {
                let notes = try await ear.notifications(until: .now + .seconds(30))
                #expect(!notes.isEmpty)
                heard += notes.map(\.payload)
            }
            #expect(heard == ["one", "two"])
            #expect(try await ear.notifications(until: .now + .milliseconds(5)).isEmpty)
        }
    }

    @Test func `a wait for notifications makes way for another call`() async throws {
        try await withConnection(.empty) { connection in
            try await connection.listen("quiet")
            let began = ContinuousClock.now
            async let wait = connection.notifications(until: .now + .seconds(60))
            async let call = connection.int("select 1")
            #expect(try await call == 1)
            #expect(try await wait.isEmpty || began.duration(to: .now) < .seconds(30))
        }
    }

    @Test func `a transaction commits when its body returns and rolls back when it throws`() async throws {
        try await withConnection(.empty) { connection in
            try await connection.run("create table public.t (n int)")
            let value = try await connection.transaction { connection throws(PostgresError) in
                try await connection.execute("insert into public.t values (1)")
                return 42
            }
            #expect(value == 42)
            await #expect(throws: PostgresError.cancelled) {
                try await connection.transaction { connection throws(PostgresError) in
                    try await connection.execute("insert into public.t values (2)")
                    throw .cancelled
                }
            }
            #expect(try await connection.column("select n from public.t") == ["1"])
            #expect(try await connection.bool("select pg_current_xact_id_if_assigned() is null"))
        }
    }

    @Test(arguments: ["serializable", "repeatable read"])
    func `a server's other default of isolation is not used`(level: String) async throws {
        try await withDatabase(.empty) { database in
            let admin = try await database.connect()
            try await admin.run("alter database \(database.name) set default_transaction_isolation = '\(level)'")
            let connection = try await database.connect()
            #expect(try await connection.value("select current_setting('transaction_isolation')") == "read committed")
            let inside = try await connection.transaction { connection throws(PostgresError) in
                try await connection.value("select current_setting('transaction_isolation')")
            }
            #expect(inside == "read committed")
            try await connection.run("create table public.t (level text)")
            try await connection.pipeline([
                Statement("insert into public.t values (current_setting('transaction_isolation'))")
            ]
            )
            #expect(try await connection.column("select level from public.t") == ["read committed"])
        }
    }

    @Test func `of several hosts the one that can be written to is chosen`() async throws {
        try await withCluster(settings: ["default_transaction_read_only": "on"]) { standby in
            let primary = try await TestCluster.shared()
            func place(_ url: String) -> String {
                String(url.split(separator: "host=")[1].split(separator: "&")[0])
            }
            let hosts = [place(standby.url()), place(primary.url())].joined(separator: ",")
            let location = "postgresql://millrace@/millrace?host=%2Fnowhere,\(hosts)&port=5432,5432,5432"
            let connection = try await Connection.open(ConnectionOptions(location: location))
            #expect(try await connection.value("select current_setting('transaction_read_only')") == "off")
            let either = try await Connection.open(
                ConnectionOptions(location: location + "&target_session_attrs=read-only"))
            #expect(try await either.value("select current_setting('transaction_read_only')") == "on")
        }
    }

    @Test func `a host that takes a call and says nothing does not keep us from the next`() async throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                #expect(bind(listener, address, size) == 0 && listen(listener, 5) == 0)
                getsockname(listener, address, &size)
            }
            return UInt16(bigEndian: pointer.pointee.sin_port)
        }
        let url = try await TestCluster.shared().url()
        let place = String(url.split(separator: "host=")[1].split(separator: "&")[0])
        var options = ConnectionOptions(
            location: "postgresql://millrace@/millrace?host=127.0.0.1,\(place)&port=\(port),5432")
        options.connectDeadline = .seconds(2)
        let connection = try await Connection.open(options)
        #expect(try await connection.int("select 1") == 1)
        await connection.close()
    }

    @Test(arguments: [
        "postgresql://user:s3cret@localhost:1/db", "postgresql://user:s3cret@127.0.0.1:notaport/db",
        "postgresql://user:half@s3cret@localhost:1/db", "postgresql://user:s3cret/db",
        "host=127.0.0.1 port=1 password=s3cret", "host=127.0.0.1 port=1 password='s3cret", "password=s3cret nonsense=1",
        "postgresql://user:s3cret@localhost:1/db?nonsense=1", "postgresql://user:%s3cret@localhost:1/db",
        "user:s3cret@localhost/db", "host=s3cret@localhost port=1",
        "postgresql://user:s3cret\0@localhost/db", "postgresql://s3cret:x@/db?host=/nowhere",
    ])
    func `a password never appears in an error`(location: String) async throws {
        var options = ConnectionOptions(location: location)
        options.connectDeadline = .seconds(5)
        let error = try #require(try await failure { _ = try await Connection.open(options) })
        #expect(!error.description.contains("s3cret") || location.contains("//s3cret"), "\(error.description)")
        #expect(!error.debugDescription.contains("s3cret") || location.contains("//s3cret"))
        #expect(!options.summary.contains("s3cret") || location.contains("//s3cret"))
    }

    @Test(arguments: [
        (
            "postgresql://me:it%27s%5C@h:5/one?sslmode=disable",
            #"dbname='two' host='h' password='it\'s\\' port='5' sslmode='disable' user='me'"#
        ),
        ("host=h dbname=one", "dbname='two' host='h'"), ("", "dbname='two'"),
    ])
    func `another database of the same server is named`(location: String, other: String) throws {
        let named = try ConnectionOptions.location(location, database: "two")
        #expect(named == other)
        #expect(try ConnectionOptions.location(named, database: "two") == other, "it can be read again")
    }

    @Test func `a statement's values do not appear in the description of its error`() async throws {
        try await withConnection(.empty) { connection in
            try await connection.run("create table public.t (secret text unique)")
            try await connection.execute("insert into public.t values ($1)", [.text("private@example.org")])
            let error = try await failure {
                try await connection.execute("insert into public.t values ($1)", [.text("private@example.org")])
            }
            #expect(error?.description.contains("private@") == false)
            #expect(error?.debugDescription.contains("private@") == true)
        }
    }
}
