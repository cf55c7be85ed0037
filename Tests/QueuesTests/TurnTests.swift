import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// The locks that a login without any grant can take decide nothing here. sql/locks.md lists every lock.
@Suite struct TurnTests {
    /// Statements fail after a second's wait for a lock; what an outsider holds must not make them wait that long.
    private static func withOutsider(_ body: (Connection, Connection) async throws -> Void) async throws {
        let office = try await TestCluster.office()
        let role = TestCluster.name("outsider")
        try await office.run("create role \(role) login")
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run("set lock_timeout = '1s'")
            let outsider = try await database.connect(as: role)
            #expect(try await outsider.refusal(of: "select 1 from millrace.turn for update")?.sqlState == "42501")
            #expect(
                try await outsider.refusal(of: "begin; lock table millrace.turn in access share mode")?.sqlState
                    == "42501")
            try await outsider.run("rollback")
            try await body(connection, outsider)
            await outsider.close()
            await connection.close()
        }
        try await office.run("drop role \(role)")
        await office.close()
    }

    /// Takes every number that was ever used, exclusively and for the whole session, whatever others hold.
    private static func takeEverything(_ outsider: Connection) async throws {
        try await outsider.run(
            """
            select count(pg_advisory_lock(class, b)) from generate_series(1297239619, 1297239642) class, generate_series(0, 70) b;
            select count(pg_advisory_lock(class)) from generate_series(1297239619, 1297239642) class;
            select count(pg_advisory_lock(hashtextextended('millrace.template ' || name, 0))) from unnest(array['welcome', 'bill']) name;
            select count(pg_advisory_lock(session)) from generate_series(1, 3) session;
            select count(pg_try_advisory_lock(classid::int, objid::int)) from pg_locks
             where locktype = 'advisory' and objsubid = 2 and database = (select oid from pg_database where datname = current_database())
            """)
    }

    @Test func `jobs with limits are claimed, end and are swept while an outsider holds every lock`() async throws {
        try await Self.withOutsider { connection, outsider in
            try await Self.takeEverything(outsider)
            for rule in [("queue", "default"), ("key", "k"), ("tenant", "t")] {
                try await connection.limit(rule.0, rule.1, #"{"concurrency": 1}"#)
            }
            let first = try await connection.enqueue("'test', limit_key => 'k', tenant => 't'")
            let second = try await connection.enqueue("'test', limit_key => 'k', tenant => 't'")
            try await connection.openSession()
            #expect(try await connection.claim(wanted: 1) == [first])
            #expect(try await connection.claim(number: 16) == [])
            try await connection.end([first])
            _ = try await connection.value("select moved from millrace.gates_open()")
            #expect(try await connection.claim(number: 24) == [second])
            try await connection.end([second], number: 25)
            #expect(try await connection.int("select swept from millrace.slots_sweep()") > 0)
            #expect(try await connection.int("select count(*) from millrace.slots_audit()") == 0)
            #expect(try await connection.bool("select ran from millrace.maintain()"))
        }
    }

    @Test func `a claim that waits its turn goes on when an outsider holds that turn`() async throws {
        try await Self.withOutsider { connection, outsider in
            let job = try await connection.enqueue()
            try await connection.openSession()
            func claim(_ number: Int) async throws -> [String] {
                try await connection.column(
                    """
                    select c.id from millrace.claim(1, \(number), array(select id from millrace.kind), array[(select queue from millrace.ready limit 1)],
                        array[17], array[0::bigint], array[9223372036854775807], array[9], 9, '{}', '{}', false, true) c
                    """)
            }
            // It is seen in pg_locks while a claim holds it.
            try await connection.run("begin")
            #expect(try await claim(8) == ["\(job)"])
            let key = try await outsider.int(
                """
                select classid::bigint << 32 | objid::bigint from pg_locks
                 where locktype = 'advisory' and objsubid = 1 and database = (select oid from pg_database where datname = current_database())
                """)
            try await connection.run("rollback")
            try await outsider.run("select pg_advisory_lock(\(key))")
            #expect(try await claim(16) == ["\(job)"])
        }
    }

    @Test(.enabled(if: Template.hasRooms))
    func `flows go on and events and changes are numbered while an outsider holds every lock`() async throws {
        try await Self.withOutsider { connection, outsider in
            try await Self.takeEverything(outsider)
            let first = try await connection.enqueue()
            let last = try await connection.enqueue("'test', options => '{\"after\": [\(first)]}'")
            try await connection.openSession()
            try await connection.claim()
            try await connection.finish([.init(id: first, outcome: 1)], complete: [9: 1])
            try await connection.run("select millrace.flows_check()")
            while try await connection.bool("select more from millrace.flows_advance()") {}
            #expect(try await connection.state(last) == "ready")

            try await connection.run("select millrace.event_publish('a.b', '/s', '1')")
            #expect(try await connection.int("select count(*) from millrace.events_changes()") == 1)
            try await connection.run(
                """
                insert into millrace.document_change (at, document, change, data) values (now(), gen_random_uuid(), 'created', '{}');
                insert into millrace.checkin_change (at, alarm, person, change, data) values (now(), null, 'p', 'x', '{}');
                insert into millrace.mail_change (at, message, change, data) values (now(), gen_random_uuid(), 'x', '{}');
                insert into millrace.feed (at, topic, person, ref, change, data) values (now(), 'quests', 'p', 'x', 'x', '{}')
                """)
            for feed in ["documents_changes", "checkin_changes", "mail_changes", "feed_next"] {
                #expect(try await connection.int("select count(*) from millrace.\(feed)(0)") == 1, "\(feed)")
            }
        }
    }

    @Test(.enabled(if: Template.hasRooms))
    func `mail, uploads, templates and routes have their turns while an outsider holds every lock`() async throws {
        try await Self.withOutsider { connection, outsider in
            try await Self.takeEverything(outsider)
            let mail = try await connection.value(
                "select millrace.mail_send(array['a@example.org'], 'S', 'T', sender => 'kai')")
            #expect(
                try await connection.value(
                    "select verdict from millrace.mail_batch_open('smtp', array['\(mail ?? "")'], true, 7, 60, 9, 60, 9, 60)"
                ) == "in")
            try await connection.run("select millrace.mail_forsaken(); select millrace.mail_retire(1)")
            #expect(
                try await connection.int("select count(*) from millrace.setting where name in ('mail_forsaken_at')")
                    == 1
            )
            let blob = String(repeating: "ab", count: 32)
            try await connection.run(
                "insert into millrace.blob (id, size, stored_at, touched_at) values ('\\x\(blob)', 1, now(), now())")
            #expect(try await connection.bool("select millrace.upload_arrived(gen_random_uuid(), '\\x\(blob)')"))
            #expect(try await connection.int("select millrace.template_publish('bill', 'Bill', null, 'x', '{}')") == 1)
            #expect(try await connection.bool("select millrace.template_use('bill', 1)") == false)
            try await connection.enqueue("'test', queue => 'other'")
            #expect(
                try await connection.int("select count(*) from millrace.route where queue_name = 'other'") == 1)
        }
    }

    @Test func `a migration waits for an outsider's lock for a while only, and then excludes others all the same`()
        async throws
    {
        try await Self.withOutsider { connection, outsider in
            try await outsider.run("select pg_advisory_lock(1297239622)")
            var migrator = Migrator.asTested()
            migrator.patience = .milliseconds(20)
            #expect(try await migrator.migrate(on: connection).refreshed)
            // A migrator holds this lock; nobody but the owner can.
            try await connection.run("begin; lock table millrace.migration in share row exclusive mode")
            #expect(
                try await outsider.refusal(of: "begin; lock table millrace.migration in share row exclusive mode")?
                    .sqlState == "42501")
            try await connection.run("rollback")
        }
    }

    @Test func `two who come to a turn exclude each other, and one who tries does not wait`() async throws {
        try await withDatabase { database in
            let (first, second) = (try await database.connect(), try await database.connect())
            try await first.run("begin; select millrace.turns_wait('key gate', array[3, 5])")
            #expect(try await second.bool("select millrace.turn_try('key gate', 4)"))
            #expect(try await second.bool("select millrace.turn_try('key gate', 5)") == false)
            let process = try await second.process()
            async let waits: Void = second.run("select millrace.turns_wait('key gate', array[5, 4])")
            try await waitUntilBlocked(process, seenBy: first)
            try await first.run("commit")
            try await waits
            #expect(try await second.bool("select millrace.turn_try('key gate', 5)"))
            #expect(try await second.bool("select millrace.turn_try('nothing of the kind')") == false)
            await first.close()
            await second.close()
        }
    }

    /// A new lock needs a decision: an outsider that holds it may cost no more than the list says.
    @Test func `every function and file that takes an advisory lock is in the list of locks`() async throws {
        let root = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
        let list = String(
            decoding: try #require(FileManager.default.contents(atPath: "\(root)/sql/locks.md")), as: UTF8.self)
        try await withConnection { connection in
            let functions = try await connection.column(
                """
                select distinct p.proname from pg_proc p
                 where p.pronamespace = 'millrace'::regnamespace and p.prosrc ~ 'pg_(try_)?advisory' order by 1
                """)
            let ofRooms = Template.hasRooms ? ["event_wake", "feed_say", "feed_wake", "notice_wake"] : []
            #expect(
                functions == (["claim_turn", "enqueue_as", "wake_saying", "watch"] + ofRooms).sorted(),
                "another function takes one: who else can hold it, and what then?")
            for function in functions { #expect(list.contains("`\(function)`"), "\(function)") }
            let turns = Set(try await connection.column("select distinct name from millrace.turn"))
            for turn in turns { #expect(list.contains("`\(turn)`"), "\(turn)") }
        }
        let sources = try #require(FileManager.default.enumerator(atPath: "\(root)/Sources"))
        for case let path as String in sources where path.hasSuffix(".swift") {
            let text = String(
                decoding: FileManager.default.contents(atPath: "\(root)/Sources/\(path)") ?? Data(), as: UTF8.self)
            guard text.contains("pg_advisory") || text.contains("pg_try_advisory"), !path.contains("Load/")
            else {
                continue
            }
            #expect(list.contains("`\(path)`"), "\(path)")
        }
    }
}
