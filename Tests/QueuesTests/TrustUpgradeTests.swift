import Postgres
import Schema
import TestSupport
import Testing

@testable import MillraceQueues

/// A database of before logins were trusted: people keep working, and each login whose claims go on to count, or no longer do, is named.
@Suite(.enabled(if: Template.hasRooms)) struct TrustUpgradeTests {
    /// The schema at version 74, as far as the migration looks: its tables, the grants of its roles, and rows of people and tenants.
    private static func old(_ connection: Connection, _ names: Names) async throws {
        try await connection.run(
            "create schema millrace; create table millrace.migration (number int primary key, name text not null, applied_at timestamptz not null default clock_timestamp())"
        )
        for migration in try OldSchema.migrations {
            try await connection.run(script: .shipped(migration.bytes))
            try await connection.run(
                "insert into millrace.migration (number, name) values (\(migration.number), '\(migration.name)')")
        }
        try await connection.run(
            """
            set check_function_bodies = off;
            create function millrace.check_in() returns void language sql as 'select null::void';
            create function millrace.right_staff() returns void language sql as 'select null::void';
            create function millrace.right_backend() returns void language sql as 'select null::void';
            revoke all on all functions in schema millrace from public;
            grant execute on function millrace.check_in() to \(names.client), \(names.worker);
            grant execute on function millrace.right_staff() to \(names.worker);
            insert into millrace.setting (name, value) values ('role_gateway', '\(names.gateways)'), ('role_client', '\(names.client)'), ('role_worker', '\(names.worker)');
            insert into millrace.queue (name) values ('default');
            insert into millrace.queue (name, main, tenant, keyed) select 'default', (select id from millrace.queue where name = 'default' and main is null), t, false from unnest(array['ada', 'acme', 'eve', 'shop']) t;
            insert into millrace.kind (name) values ('mine');
            insert into millrace.job (id, kind, queue, lane, enqueued_at, args, owner, tenant)
            select row_number() over (), (select id from millrace.kind where name = 'mine'), q.id, 17, now(), '{}', v.owner, v.tenant
              from (values ('ada', '\(names.client)'), ('acme', '\(names.client)'), ('eve', '\(names.client)'), ('shop', '\(names.app)')) v(tenant, owner)
              join millrace.queue q on q.tenant = v.tenant;
            insert into millrace.ready (seq, job, queue, kind, lane) select j.id, j.id, j.queue, j.kind, j.lane from millrace.job j;
            insert into millrace.profile (person, changed_at) values ('ada', now()), ('bob', now());
            insert into millrace.family (family, zone, today, opened_at, next_rollover_at, due_at, created_at) values ('f', 'UTC', current_date, now(), now() + interval '1 day', now() + interval '1 day', now());
            insert into millrace.feed (at, topic, person, tenant, ref, change, data) values (now(), 'documents', 'bob', 'acme', 'r', 'created', '{}'), (now(), 'documents', 'ada', 'ada', 'r', 'created', '{}');
            insert into millrace.quota (tenant, name, allowed, period, since, used, warned)
            select t, n, 5, 'month', now(), 0, 0 from (values ('ada', 'pages'), ('acme', 'pages'), ('f', 'ai_tokens')) v(t, n);
            insert into millrace.sync_person (person, pushed_at) values ('ada', now())
            """)
        try await SchemaContents.writeDown(on: connection)
    }

    private struct Names {
        let client = TestCluster.name("client"), worker = TestCluster.name("worker"),
            gateways = TestCluster.name("gateways")
        let gateway = TestCluster.name("gateway"), authenticator = TestCluster.name("authenticator"),
            app = TestCluster.name("app")
        let authenticated = TestCluster.name("authenticated")
        var all: [String] { [client, worker, gateways, authenticated, gateway, authenticator, app] }
    }

    @Test func `people go on, each login is named, and rows of people get their own form`() async throws {
        let names = Names()
        let office = try await TestCluster.office()
        try await office.run(
            """
            create role \(names.client); create role \(names.worker); create role \(names.gateways);
            create role \(names.authenticated) nologin in role \(names.client);
            create role \(names.gateway) login in role \(names.gateways), \(names.client);
            create role \(names.authenticator) login noinherit in role \(names.authenticated);
            create role \(names.app) login in role \(names.client)
            """)
        try await withDatabase(.empty) { database in
            let owner = try await database.connect()
            try await Self.old(owner, names)
            let migrator = Migrator.ofAllRooms(roles: [
                ("client", names.client), ("worker", names.worker), ("gateway", names.gateways),
            ])
            let report = try await migrator.migrate(on: owner)
            let notes = report.notes.joined(separator: "\n")
            #expect(notes.contains("The claims that \(names.authenticator) sets go on to count"), "\(notes)")
            #expect(notes.contains("The claims that \(names.gateway) sets go on to count: it is a gateway."))
            #expect(
                notes.contains("The claims that \(names.app) sets no longer count")
                    && notes.contains("trust_claims('\(names.app)')"))
            #expect(notes.contains("2 tenants were of people"))
            #expect(report.notes.count == 5, "\(notes)")
            #expect(try await migrator.migrate(on: owner).notes.isEmpty)
            for (login, role, isBelieved) in [
                (names.gateway, names.client, true), (names.authenticator, names.authenticated, true),
                (names.app, names.client, false),
            ] {
                let session = try await database.connect(as: login)
                try await session.run(
                    "set role \(role); select set_config('request.jwt.claims', '{\"sub\": \"ada\"}', false)")
                let refusal = try await session.refusal(of: "select millrace.person_show('ada')")
                #expect((refusal == nil) == isBelieved, "\(login): \(refusal?.message ?? "went through")")
                await session.close()
            }
            // ada and eve are people (eve by nothing but its jobs), acme is a tenant in which bob acts, shop is a back end's.
            #expect(
                try await owner.column("select tenant from millrace.job order by id") == [
                    "person:ada", "acme", "person:eve", "shop",
                ])
            #expect(
                try await owner.column("select tenant || ' ' || name from millrace.quota order by 1")
                    == ["acme pages", "family:f ai_tokens", "person:ada pages"])
            #expect(
                try await owner.column("select tenant from millrace.feed where tenant is not null order by 1") == [
                    "acme", "person:ada",
                ])
            let ada = try await database.connect(as: names.gateway)
            try await ada.run(
                "set role \(names.client); select set_config('request.jwt.claims', '{\"sub\": \"ada\"}', false)")
            #expect(try await ada.column("select id from millrace.own_jobs()") == ["1"])
            let trust = try await ClaimTrust.look(on: owner)
            #expect(trust.trusted.map(\.name).sorted() == [names.authenticator, names.gateway].sorted())
            #expect(trust.disbelieved.map(\.name) == [names.app] && trust.warnings.isEmpty)
            for connection in [ada, owner] { await connection.close() }
        }
        for role in names.all.reversed() { try await office.run("drop role \(role)") }
        await office.close()
    }
}
