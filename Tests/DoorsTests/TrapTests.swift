import MillraceQueues
import Postgres
import TestSupport
import Testing

/// A role's code that runs inside another role's statement: in an index expression that autovacuum evaluates, in a trigger, a cast, an
/// operator, a policy. It may do what that role may do in its own session, and nothing more.
@Suite struct TrapTests {
    /// A place where one role's code runs in another's statement. `spy()` acts as its owner; `spied(int)` is for places that need an
    /// immutable function, which Postgres itself runs as the table's owner.
    struct Trap: Sendable, CustomTestStringConvertible {
        let name: String
        let built: String
        let sprung: String
        var testDescription: String { name }
    }

    static let traps = [
        Trap(
            name: "an index expression", built: "create index on bait (spied(a))",
            sprung: "analyze trap.bait; reindex table trap.bait"),
        Trap(
            name: "a statistics expression", built: "create statistics bait_spied on spied(a), a from bait",
            sprung: "analyze trap.bait"),
        Trap(
            name: "a materialized view", built: "create materialized view watched as select spied(a) from bait",
            sprung: "refresh materialized view trap.watched"),
        Trap(
            name: "a trigger",
            built: """
                create function fired() returns trigger language plpgsql security definer as $$ begin perform trap.spy(); return new; end $$;
                create trigger fires before insert on bait for each row execute function fired()
                """, sprung: "insert into trap.bait values (2)"),
        Trap(
            name: "a column's default", built: "alter table bait add column b int default spied_as_owner(1)",
            sprung: "insert into trap.bait (a) values (3)"),
        Trap(
            name: "a generated column",
            built: "alter table bait add column c int generated always as (spied_as_owner(a)) stored",
            sprung: "insert into trap.bait (a) values (4)"),
        Trap(
            name: "a check", built: "alter table bait add constraint spies check (spied_as_owner(a) = a)",
            sprung: "insert into trap.bait (a) values (5)"),
        Trap(
            name: "a policy",
            built:
                "alter table bait enable row level security; create policy spies on bait using (spied_as_owner(a) = a)",
            sprung: "select count(*) from trap.bait"),
        Trap(
            name: "a view", built: "create view seen as select spied_as_owner(a) as a from bait",
            sprung: "select sum(a) from trap.seen"),
        Trap(
            name: "a cast",
            built: """
                create type shape as (a int);
                create function shaped(shape) returns int language plpgsql security definer as $$ begin perform trap.spy(); return 1; end $$;
                create cast (shape as int) with function shaped(shape) as implicit
                """, sprung: "select (row(1)::trap.shape)::int"),
        Trap(
            name: "an operator",
            built: "create operator @@@ (leftarg = int, rightarg = int, function = spied_as_owner_two)",
            sprung: "select 1 operator(trap.@@@) 1"),
        Trap(
            name: "a domain", built: "create domain checked as int check (spied_as_owner(value) = value)",
            sprung: "select 7::trap.checked"),
    ]

    /// What the spy tries. Each returns null, false or nothing if it gained nothing. `$` stands for another role's job.
    static let acts = [
        "select state from millrace.job($)", "select nullif(millrace.cancel($), false)::text",
        "select id::text from millrace.own_jobs()",
        "select millrace.enqueue('secret.kind')::text",
        "select millrace.enqueue_many('[{\"kind\": \"secret.kind\"}]')::text",
        "select millrace.mail_send(array['a@b.example'], 's', 't')::text",
        "select millrace.event_publish('com.example.x', '/x', '1')::text",
        "select millrace.document_register('file:/proc/self/environ', actor => 'alice')::text",
        "select millrace.document_register('blob:' || repeat('0', 64))::text",
        "select millrace.check_in_disarm('alice', 'no', actor => 'alice')::text",
        "select millrace.person_erase('alice', actor => 'alice')::text",
        "select millrace.weekly_stats('alice', actor => 'alice')::text",
        "select millrace.pause('default')::text", "select millrace.job_delete($)::text",
        "select millrace.grant_enqueue(current_user)::text", "select millrace.grant_backend(current_user)::text",
        "select millrace.claim_one()::text",
        "select args::text from millrace.job", "select value from millrace.setting limit 1",
        "select args::text from millrace.jobs limit 1",
    ]

    static func build(_ connection: Connection, job: Int, names: [String]) async throws {
        let forged = names.flatMap { name in
            [
                "select state from millrace.job($, caller => '\(name)')",
                "select nullif(millrace.cancel($, caller => '\(name)'), false)::text",
                "select millrace.enqueue_as('secret.kind', '{}', null, null, null, null, 'skip', null, null, null, null, null, null, 17, '\(name)')::text",
            ]
        }
        try await connection.run(
            """
            create schema trap;
            set search_path = trap, pg_catalog;
            create table bait (a int);
            create table act (n serial, act text);
            create table log (act text, session text, outcome text, gained text);
            grant usage on schema trap to public;
            grant all on all tables in schema trap to public;
            create function spy() returns void language plpgsql security definer as $$
            declare
                one record;
                gained text;
                forged text;
            begin
                for one in select a.act from trap.act a order by a.n loop
                    begin
                        execute one.act into gained;
                        insert into trap.log values (one.act, session_user, 'ran', gained);
                    exception when others then
                        insert into trap.log values (one.act, session_user, sqlstate, null);
                    end;
                end loop;
                -- The role that runs the statement.
                foreach forged in array array[session_user::text, current_setting('role')] loop
                    begin
                        execute format('select state from millrace.job(%s, caller => %L)', \(job), forged) into gained;
                        insert into trap.log values ('forged ' || forged, session_user, 'ran', gained);
                    exception when others then
                        insert into trap.log values ('forged ' || forged, session_user, sqlstate, null);
                    end;
                end loop;
            end $$;
            create function spy_as_run() returns void language plpgsql as $$ begin perform trap.spy(); end $$;
            create function spied(x int) returns int language plpgsql immutable as $$ begin perform trap.spy_as_run(); return x; end $$;
            create function spied_as_owner(x int) returns int language plpgsql immutable security definer as $$ begin perform trap.spy(); return x; end $$;
            create function spied_as_owner_two(x int, y int) returns int language plpgsql security definer as $$ begin perform trap.spy(); return x; end $$;
            """)
        for act in acts + forged {
            try await connection.run(
                "insert into act (act) values ($act$\(act.replacing("$", with: "\(job)"))$act$)")
        }
    }

    static func withRoles(_ body: (RoleNames) async throws -> Void) async throws {
        let office = try await TestCluster.office()
        let names = RoleNames()
        for role in names.all { try await office.run("create role \(role) login") }
        try await office.run("grant \(names.client) to \(names.attacker)")
        try await body(names)
        for role in names.all.reversed() {
            try await office.run("drop owned by \(role); drop role \(role)")
        }
        await office.close()
    }

    @Test(arguments: [true, false])
    func `code inside another's statement gains nothing by it`(superuserOwnsTheSchema: Bool) async throws {
        try await Self.withRoles { names in
            for attacker in [names.attacker, names.stranger] {
                try await withDatabase(.empty, owner: names.owner) { database in
                    let root = try await database.connect()
                    let owner = superuserOwnsTheSchema ? root : try await database.connect(as: names.owner)
                    _ = try await names.migrator().migrate(on: owner)
                    let job = try await owner.int("select millrace.enqueue('secret.kind', '{\"secret\": 1}')")
                    try await root.run("grant create on database \(database.name) to \(attacker)")
                    let intruder = try await database.connect(as: attacker)
                    try await Self.build(intruder, job: job, names: names.all.filter { $0 != attacker })
                    for trap in Self.traps {
                        try await intruder.run(
                            "drop table if exists bait cascade; create table bait (a int); grant all on bait to public; insert into bait values (1)"
                        )
                        try await intruder.run(trap.built)
                        try await intruder.run("grant all on all tables in schema trap to public; truncate log")
                        try await Self.spring(trap, in: database, names: names, root: root)
                        let gained = try await intruder.records(
                            "select act, session, outcome, gained from trap.log where gained is not null")
                        #expect(gained.isEmpty, "\(trap.name) of \(attacker): \(gained)")
                        #expect(
                            try await intruder.int(
                                "select count(distinct act) from trap.log where session <> '\(attacker)'")
                                >= Self.acts.count,
                            "\(trap.name) was not sprung")
                    }
                    #expect(try await owner.value("select state from millrace.job(\(job))") == "ready")
                    for connection in [intruder, root] { await connection.close() }
                    if !superuserOwnsTheSchema { await owner.close() }
                }
            }
        }
    }

    /// By the superuser, and by each role that may run the statement at all.
    private static func spring(_ trap: Trap, in database: TestDatabase, names: RoleNames, root: Connection) async throws
    {
        try await root.run(trap.sprung)
        for victim in [names.owner, names.worker, names.admin, names.client] {
            let connection = try await database.connect(as: victim)
            // Maintenance is its owner's or the superuser's: others are refused, which is as good.
            _ = try await connection.refusal(of: trap.sprung)
            await connection.close()
        }
    }
}
