import Mail
import MillraceQueues
import Postgres
import TestSupport
import Testing
import Workers

@testable import MillraceCommand

/// The troubles that `status` reports although workers live, and how it reports them.
@Suite struct StatusTroubleTests {
    @Test func `a kind whose runs all fail is degraded, with its error, though retries wait for hours`() async throws {
        try await withDatabase { database in
            let url = database.url
            let connection = try await database.connect()
            try await connection.makeFailures(12)
            let outcome = await millrace("status", "--database-url", url)
            #expect(outcome.code == .degraded, "\(outcome.output)")
            #expect(
                outcome.output.hasPrefix(
                    "DEGRADED  test in default: 12 of 12 runs failed in the last 5 minutes: upstream #"),
                "\(outcome.output)")
            #expect(outcome.output.contains("12 jobs wait for another attempt"))
            let json = try JSONValue.read(await millrace("status", "--json", "--database-url", url).output)
            let trouble = try #require(json["troubles"]?.items?.first)
            #expect(trouble["trouble"]?.text == "failing" && trouble["error"]?.text == "upstream #")
            #expect(json["queues"]?.items?.first?["retrying"]?.integer == 12)
            #expect(json["exit_code"]?.integer == 10 && json["fail_if"] == .null)
            await connection.close()
        }
    }

    @Test func `a login that may not look is told so, and not that all is in a bad way`() async throws {
        let office = try await TestCluster.office()
        let role = TestCluster.name("stranger")
        try await office.run("create role \(role) login")
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run("grant usage on schema millrace to \(role)")
            let outcome = await millrace(
                "status", "--database-url", database.url.replacing("//millrace@", with: "//\(role)@"))
            #expect(outcome.code == .failed && outcome.output.isEmpty, "\(outcome.output)")
            #expect(outcome.errors.contains("permission denied"), "\(outcome.errors)")
            await connection.close()
        }
        try await office.run("drop role \(role)")
        await office.close()
    }

    @Test func `a hook that fails is named with its room, its reason and the page that helps`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                create or replace function millrace.media_expire(most int default 1) returns bigint
                language plpgsql as $$ begin raise exception 'planted'; end $$;
                select millrace.maintain()
                """)
            let outcome = await millrace("status", "--database-url", database.url)
            #expect(outcome.code == .degraded, "\(outcome.output)")
            #expect(outcome.output.contains("media_expire of media has failed 1 time"), "\(outcome.output)")
            let json = await millrace("status", "--json", "--database-url", database.url).output
            #expect(json.contains("\"planted\"") && json.contains("\"a room's hook fails\""), "\(json)")
            await connection.close()
        }
    }

    @Test func `one failure that is retried is well`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.makeFailures(1)
            let outcome = await millrace("status", "--database-url", database.url)
            #expect(
                outcome.code == .done && outcome.output.hasPrefix("OK  nothing needs attention"), "\(outcome.output)")
            await connection.close()
        }
    }

    @Test func `conditions ask for retries, paused jobs, failing kinds and rooms without a worker`() async throws {
        try await withDatabase { database in
            let url = database.url
            let connection = try await database.connect()
            func holds(_ condition: String) async -> ExitCode {
                await millrace("status", "--fail-if", condition, "--quiet", "--database-url", url).code
            }
            let conditions = ["retrying>=12", "failing>0", "paused>=1", "unserved>=1"]
            for condition in conditions { #expect(await holds(condition) == .done, "\(condition)") }
            try await connection.makeFailures(12)
            try await connection.run(
                """
                select millrace.enqueue('test', queue => 'other'), millrace.pause('other'), millrace.notice_send('anna', 'k')
                """)
            for condition in conditions { #expect(await holds(condition) == .critical, "\(condition)") }
            await connection.close()
        }
    }

    @Test func `the quiet are told the verdict of the exit code and why, and nothing else`() async throws {
        try await withDatabase { database in
            let url = database.url
            // Critical by the usual rules: a job and no worker.
            #expect(await millrace("enqueue", "a.b", "--database-url", url).code == .done)
            let none = await millrace(
                "status", "--fail-if", "ready>5,oldest>1h", "--quiet", "--database-url", url)
            #expect(
                none.code == .done && none.output == "OK  no condition holds: ready>5, oldest>1h\n", "\(none.output)")
            let one = await millrace("status", "--fail-if", "ready>5,workers<1", "--quiet", "--database-url", url)
            #expect(one.code == .critical && one.output == "CRITICAL  workers<1: it is 0\n", "\(one.output)")
            let usual = await millrace("status", "--quiet", "--database-url", url)
            #expect(
                usual.code == .critical && usual.output == "CRITICAL  1 job waits and no worker is running\n",
                "\(usual.output)")
            let whole = await millrace("status", "--fail-if", "ready>5", "--database-url", url)
            #expect(
                whole.code == .done && whole.output.hasPrefix("OK  no condition holds: ready>5\n"), "\(whole.output)")
            #expect(whole.output.contains("\n  critical  1 job waits and no worker is running\n"))
            let json = try JSONValue.read(
                await millrace("status", "--fail-if", "ready>5,workers<1", "--json", "--database-url", url).output)
            #expect(json["exit_code"]?.integer == 11)
            #expect(json["fail_if"]?.items?.map { $0["holds"] } == [.bool(false), .bool(true)])
        }
    }

    @Test(arguments: [60, 80, 120])
    func `reasons and attention come first, and no line is wider than the window`(columns: Int) async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.makeFailures(12)
            try await connection.run(
                """
                select millrace.enqueue('test', queue => 'a.queue.with.quite.a.long.name'), millrace.pause('a.queue.with.quite.a.long.name'),
                       millrace.limit_set('key', 'user:*', '{"concurrency": 3, "rate": 100}'), millrace.notice_send('anna', 'k')
                """)
            let outcome = await millrace("status", "--no-color", "--database-url", database.url, columns: columns)
            let lines = outcome.output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            for line in lines { #expect(DisplayWidth.of(line) <= columns, "\(line)") }
            let attention = try #require(lines.firstIndex(of: "attention"))
            #expect(try #require(lines.firstIndex(of: "queues")) > attention)
            let reasons = lines[..<attention].joined(separator: " ")
            for part in ["12 of 12 runs failed", "has been paused", "no worker tells people"] {
                #expect(reasons.contains(part), "\(reasons)")
            }
            #expect(outcome.output.contains("100 %"))  // the failed share is among the last to go
            await connection.close()
        }
    }

    @Test(arguments: [60, 80, 120])
    func `lanes of notices, webhooks and check-ins stand beside the queues`(columns: Int) async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let none = await millrace("status", "--no-color", "--database-url", database.url, columns: columns)
            #expect(!none.output.contains("\nlanes\n"), "\(none.output)")
            try await connection.run(
                """
                select millrace.notice_send('anna', 'k') from generate_series(1, 3);
                select millrace.notice_send('ben', 'help', alarm => true), millrace.notice_take(true, 1, 7, 60);
                insert into millrace.watch (person, every, grace, warnings, zone, state, expires_at, wake_at, created_at)
                select 'anna', '1 day', '5 min', '{}', 'UTC', 'armed', now() + interval '1 day', now() + interval '1 day', now()
                """)
            let outcome = await millrace("status", "--no-color", "--database-url", database.url, columns: columns)
            let lines = outcome.output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            for line in lines { #expect(DisplayWidth.of(line) <= columns, "\(line)") }
            let title = try #require(lines.firstIndex(of: "lanes"))
            let table = lines[(title + 1)...].prefix { !$0.isEmpty }.map { $0.split(separator: " ").map(String.init) }
            #expect(
                table.map { $0.first ?? "" } == ["lane", "notices", "notices", "check-ins"], "\(outcome.output)")
            if columns >= 80 {
                #expect(table[0] == ["lane", "waiting", "scheduled", "running", "oldest", "failed", "workers"])
                #expect(table[1].starts(with: ["notices", "alarms", "0", "0", "0", "-", "100"]), "\(table[1])")
                #expect(table[2].starts(with: ["notices", "others", "3", "0", "0"]) && table[2].last == "0")
                #expect(table[3] == ["check-ins", "watches", "0", "1", "-", "-", "-", "0"], "\(table[3])")
            }
            let json = try JSONValue.read(await millrace("status", "--json", "--database-url", database.url).output)
            let lanes = try #require(json["lanes"]?.items)
            #expect(lanes.count == 6)
            #expect(lanes[0]["room"]?.text == "notices" && lanes[0]["lane"]?.text == "alarms")
            #expect(lanes[0]["failed_last_hour"]?.integer == 1 && lanes[0]["ended_last_hour"]?.integer == 1)
            #expect(lanes[1]["waiting"]?.integer == 3 && lanes[1]["workers"]?.integer == 0)
            #expect(lanes[4]["scheduled"]?.integer == 1 && lanes[4]["running"] == .null)
            await connection.close()
        }
    }

    @Test func `a pause names the rooms in use that it does not reach`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            func pause(_ queue: String) async -> Outcome {
                await millrace("queues", "pause", queue, "--create", "--database-url", database.url)
            }
            let alone = await pause("one")
            #expect(alone.code == .done && alone.errors.isEmpty, "\(alone.errors)")
            try await connection.run(
                """
                select millrace.notice_send('anna', 'k'), millrace.notice_send('ben', 'k', alarm => true);
                insert into millrace.watch (person, every, grace, warnings, zone, state, expires_at, wake_at, created_at)
                select 'anna', '1 day', '5 min', '{}', 'UTC', 'armed', now() + interval '1 day', now() + interval '1 day', now()
                """)
            let beside = await pause("two")
            #expect(beside.code == .done && beside.output == "two: paused\n")
            #expect(beside.errors.hasPrefix("not paused: notices, check-ins, which are not jobs;"), "\(beside.errors)")
            let resumed = await millrace("queues", "resume", "two", "--database-url", database.url)
            #expect(resumed.code == .done && resumed.errors.isEmpty, "\(resumed.errors)")
            await connection.close()
        }
    }

    @Test func `limited_by and the reason stand in what jobs say`() async throws {
        try await withDatabase { database in
            let url = database.url
            let connection = try await database.connect()
            try await connection.run("select millrace.limit_set('key', 'k', '{\"concurrency\": 0}')")
            let id = try await connection.int("select millrace.enqueue('test', limit_key => 'k')")
            try await connection.makeFailures(0)
            try await connection.claim(number: 80)
            let list = try JSONValue.read(await millrace("jobs", "list", "--jsonl", "--database-url", url).output)
            #expect(list["limited_by"]?.text == "k", "\(list.compact)")
            let shown = await millrace("jobs", "show", "\(id)", "--database-url", url)
            #expect(
                shown.output.contains("does not run  its limit key k may run nothing: its limit is 0"),
                "\(shown.output)")
            let json = try JSONValue.read(
                await millrace("jobs", "show", "\(id)", "--json", "--database-url", url).output)
            #expect(json["why"]?["reason"]?.text == "key_limit" && json["limited_by"]?.text == "k")
            let limits = try JSONValue.read(await millrace("queues", "limit", "--jsonl", "--database-url", url).output)
            let status = try JSONValue.read(await millrace("status", "--json", "--database-url", url).output)
            #expect(limits["parked"]?.integer == 1 && status["parked"]?.integer == 1)
            await connection.close()
        }
    }

    @Test func `mail that waits without a worker for it, and mail that becomes files, are told`() async throws {
        try await withDatabase { database in
            let url = database.url
            let connection = try await database.connect()
            try await connection.run("select millrace.mail_send(array['a@b.example'], 's', 't')")
            try await connection.makeFailures(0)
            let waits = await millrace("status", "--quiet", "--database-url", url)
            #expect(
                waits.code == .degraded && waits.output.contains("1 mail waits and no worker sends mail"),
                "\(waits.output)")
            #expect(!waits.output.contains("no worker knows"), "\(waits.output)")
            try await connection.run(
                """
                select millrace.session_open(9, 'files', 'h', 1, '0', null, array(select id from millrace.kind), 1, false, '{"mail": "files"}')
                """)
            let files = await millrace("status", "--quiet", "--database-url", url)
            #expect(
                files.code == .degraded
                    && files.output == "DEGRADED  mail is written to files: no mail service is configured\n",
                "\(files.output)")
            await connection.close()
        }
    }

    @Test func `a worker says by which service its mail goes, and that nobody chose one`() {
        func settings(_ environment: [String: String]) -> Settings {
            Settings.load(parsed: nil, surroundings: .fake(environment))
        }
        #expect(settings([:]).lacksMailService)
        #expect(!settings(["EMAIL_SERVICE_PROVIDER": "outbox"]).lacksMailService)
        #expect(
            !settings(["MILLRACE_MAIL_SMTP_URL": "smtp://localhost:25", "EMAIL_FROM_ADDRESS": "a@b.example"])
                .lacksMailService)
    }
}

extension Connection {
    /// A session of the kind `test`, and `count` of its jobs that have failed once and wait for a day.
    fileprivate func makeFailures(_ count: Int) async throws {
        try await run(
            """
            select millrace.register_kinds('{test}', '{null}'), millrace.register_queues('{default}');
            select millrace.session_open(1, 'w', 'h', 1, '0', null, array(select id from millrace.kind where name = 'test'), 10, false, '{}');
            select millrace.enqueue('test') from generate_series(1, \(count));
            """)
        guard count > 0 else { return }
        try await claim(number: 8)
        try await run(
            """
            select millrace.finish(1, x.ids, array_fill(9::bigint, array[x.n]), array_fill(4::smallint, array[x.n]), array_fill(x.kind, array[x.n]),
                       array_fill(x.queue, array[x.n]), array_fill(1::smallint, array[x.n]), array_fill(0::smallint, array[x.n]),
                       array_fill(5, array[x.n]), '{}', '{9}', array[x.n], array_fill('upstream 502'::text, array[x.n]),
                       array_fill(86400::float8, array[x.n]))
              from (select array_agg(j.id) as ids, count(*)::int as n, min(j.kind) as kind, min(j.queue) as queue
                      from millrace.job j join millrace.lease l on j.id = any (l.ids)) x;
            select millrace.beat(1, 'working', 0, 0, 0, array[q.id], array[k.id], '{0}', '{\(count)}', '{0}', '{0}', '{0}', '{0}')
              from millrace.queue q, millrace.kind k where q.name = 'default' and q.main is null and k.name = 'test'
            """)
    }

    /// Takes all that is ready of `test`, through the gates.
    fileprivate func claim(number: Int) async throws {
        try await run(
            """
            select millrace.claim_limited(1, \(number), array(select id from millrace.kind where name = 'test'), x.queues, x.lanes, x.floors, x.ceilings, x.limits,
                       100, '{}', '{}')
              from (select array_agg(q.id order by l, q.id) as queues, array_agg(l order by l, q.id) as lanes, array_agg(0::bigint) as floors,
                           array_agg(9223372036854775807) as ceilings, array_agg(100) as limits
                      from millrace.queue q, generate_series(0, 39) l) x
            """)
    }
}
