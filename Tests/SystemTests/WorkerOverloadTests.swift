import Foundation
import Glibc
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// What strangers plant in `public` does not run as a worker's login.
@Suite struct WorkerOverloadTests {
    private static let work = """
        select count(millrace.enqueue('practice.' || k, '{"ms": 1, "n": 1, "steps": 2, "children": 2, "seconds": 0.05}', queue => 'q'))
          from unnest('{echo,nothing,sleep,chunk,steps,fan,mark,wait}'::text[]) k, generate_series(1, 3);
        select millrace.enqueue('practice.fail', '{"times": 1}', queue => 'q', max_attempts => 2, options => '{"backoff": {"base": 0.01, "cap": 0.01}}');
        select millrace.enqueue('practice.echo', queue => 'q', unique_key => 'k', limit_key => 'l', tenant => 't', tags => '{a}', priority => 1,
            options => '{"after": [1], "timeout": 5}');
        select millrace.limit_set('queue', 'q', '{"concurrency": 2}');
        select millrace.schedule_set('often', '* * * * * *', 'practice.nothing');
        select millrace.mail_send(array['ada@example.com'], template => 'welcome', data => '{"app_name": "Millrace", "user_name": "Ada"}');
        select millrace.family_create('f', 'UTC'), millrace.family_join('f', 'ada', 'parent');
        select millrace.notice_put('ada', 'alarm.raised', 'mail', 'ada@example.org', '{}', 'a', millrace.now(), null, true);
        select millrace.event_publish('com.example.paid', '/shop', '{"n": 1}', 's', 'acme');
        insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
        values ('bob', '1 hour', '5 min', '{}', 'UTC', 'armed', now(), now(), now(), now());
        insert into millrace.watch_contact (person, contact, step, wait, created_at) values ('bob', 'eve', 1, '1 hour', now());
        insert into millrace.watch_address (ref, person, contact, channel, address, verified_at)
        values (gen_random_uuid(), 'bob', 'eve', 'mail', 'eve@example.com', now());
        -- What the next maintenance makes again tells that one has run.
        do $$ begin
            execute format('drop table millrace.%I', (select max(c.relname) from pg_class c where c.relkind = 'r' and c.relname like 'history\\_short\\_2%'));
        end $$
        """

    @Test(arguments: [false, true])
    func `a worker calls nothing that a stranger has planted, from its start to its end`(isPooled: Bool) async throws {
        guard !isPooled || TestPooler.program != nil else { return }
        let office = try await TestCluster.office()
        let (role, login) = (TestCluster.name("work"), TestCluster.name("worker_login"))
        try await office.run("create role \(role); create role \(login) login in role \(role)")
        try await withDatabase(.planted) { database in
            let owner = try await database.connect()
            _ = try await Migrator.ofAllRooms(roles: [("worker", role)]).migrate(on: owner)
            try await owner.run(Self.work)
            #expect(try await PlantedOverloads.sprung(in: database) == [])
            let direct = database.url.replacing("//millrace@", with: "//\(login)@")
            if isPooled {
                try await withPooler(to: database, as: login, servers: 20) { options in
                    try await Self.serve(
                        options.location, owner, ["MILLRACE_DIRECT_URL": direct], waitsForMaintenance: false)
                }
            } else {
                try await Self.serve(direct, owner, [:], waitsForMaintenance: true)
            }
            let sprung = try await PlantedOverloads.sprung(in: database)
            #expect(sprung == [])
            await owner.close()
        }
        try await office.run("drop role \(login); drop role \(role)")
        await office.close()
    }

    private static func serve(
        _ url: String, _ owner: Connection, _ environment: [String: String], waitsForMaintenance: Bool
    ) async throws {
        let leaf =
            "to_regclass('millrace.history_short_' || to_char(now() at time zone 'UTC' + interval '4 days', 'YYYYMMDD'))"
        #expect(try await owner.bool("select \(leaf) is null"))
        let port = try freePort()
        let worker = try await MillraceProcess.worker(
            "w", database: url, ["--listen", "127.0.0.1:\(port)", "--checkins"], environment: environment)
        try await eventually("its work is done; it says: \(worker.output)") {
            try await owner.bool(
                """
                select not exists (select from millrace.jobs where queue in ('q', 'mail') and state in ('ready', 'running', 'blocked', 'scheduled'))
                   and exists (select from millrace.jobs where kind = 'practice.nothing' and queue = 'default' and state = 'succeeded')
                   and (select count(*) >= 2 and bool_and(status = 'accepted') from millrace.mail_messages)
                   and (select state from millrace.watch) <> 'armed'
                """)
        }
        for path in ["/livez", "/readyz", "/metrics"] {
            let answer = try await Program.run(
                "curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}", "http://127.0.0.1:\(port)\(path)"])
            #expect(answer.text == "200", "\(path)")
        }
        if waitsForMaintenance {
            try await eventually("it has done maintenance; it says: \(worker.output)") {
                try await owner.bool("select \(leaf) is not null")
            }
        }
        worker.signal(SIGTERM)
        #expect(try await worker.ended() == 0, "\(worker.output)")
        #expect(!worker.output.contains("permission denied"), "\(worker.output)")
    }
}
