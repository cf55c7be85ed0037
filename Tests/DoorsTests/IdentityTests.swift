import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// Who a person is: every way in which a login may take on the role that carries people's claims, and name a person, by every door that is a
/// person's. Only a trusted login is believed.
@Suite struct IdentityTests {
    /// How somebody comes to call as somebody else. `ROLE` is the role that carries claims.
    struct Way: Sendable, CustomTestStringConvertible {
        let name: String
        /// By whom: the intruder, an app's login that was granted the role; or who owns the database, or a superuser.
        var login = Login.intruder
        /// Before each statement, in the session.
        let session: String
        /// The call: `CALL` stands for a statement of a door.
        var call = "select identity.called($call$CALL$call$)"
        var testDescription: String { name }
    }

    enum Login: Sendable { case intruder, owner, superuser, gateway }

    private static let claims =
        #"select set_config('request.jwt.claims', '{"sub": "alice", "role": "authenticated"}', false);"#

    static let ways = [
        Way(name: "its own login", session: claims),
        Way(name: "set role", session: "set role ROLE; \(claims)"),
        Way(
            name: "set role, claims of one setting each", session: "set role ROLE; set request.jwt.claim.sub = 'alice';"
        ),
        Way(name: "a role that takes on the role", session: "set role BETWEEN; set role ROLE; \(claims)"),
        Way(name: "leftovers of the last client of a shared session", session: "\(claims) set session role ROLE;"),
        Way(
            name: "a local role in a transaction", session: "set role none; \(claims)",
            call: "select identity.local($call$CALL$call$)"),
        Way(
            name: "a function that runs as the role", session: claims, call: "select identity.as_role($call$CALL$call$)"
        ),
        Way(
            name: "a view of the role", session: claims,
            call: "select identity.tell($call$CALL$call$); select said from identity.seen"),
        Way(
            name: "a trigger of the role", session: claims,
            call: "insert into identity.bait values ($call$CALL$call$) returning said"),
        Way(
            name: "a policy of the role", session: claims,
            call: "select identity.tell($call$CALL$call$); select said from identity.guarded"),
        Way(
            name: "a default of the role", session: claims,
            call: "select identity.tell($call$CALL$call$); insert into identity.filled default values returning said"),
        Way(name: "the owner of the schema, as the role", login: .owner, session: "set role ROLE; \(claims)"),
        Way(name: "a superuser, as the role", login: .superuser, session: "set role ROLE; \(claims)"),
    ]

    /// Code of the role that Postgres runs in the statements of those who may maintain every table.
    static let maintenance = [
        "analyze identity.indexed", "reindex table identity.indexed", "vacuum analyze identity.indexed",
        "refresh materialized view identity.kept", "cluster identity.indexed using indexed_by",
    ]

    /// Doors of these rules are a person's, and say so with 42501 to everybody else; what is left of the others is a row of hers.
    private static func isPersonal(_ door: DoorTable.Door) -> Bool {
        (door.rule.hasPrefix("actor") || door.rule.hasPrefix("tenant")) && door.about != "family"
    }

    @Test func `nobody is a person by taking a role on, in any way, at any door`() async throws {
        try await DoorWorld.withOwnRoles { world in
            let intruder = world.names.stranger
            try await Self.open(world, intruder: intruder)
            let doors = try await DoorTable.doors(on: world.owner).filter(Self.isPersonal)
            #expect(doors.count > 80)
            var statements: [String] = []
            for door in doors {
                let object = try await world.literal(door.about, .own, for: "signed in")
                let arguments = door.arguments.replacing("{o}", with: object).replacing("{person}", with: "null")
                    .replacing("{actor}", with: "null")
                statements.append(
                    "select coalesce(string_agg(t::text, ';'), '') from millrace.\(door.name)(\(arguments)) t")
            }
            var cells = 0
            for way in Self.ways {
                let session = try await Self.session(way, world: world, intruder: intruder)
                for (door, statement) in zip(doors, statements) {
                    let outcome = try await Self.outcome(of: statement, way: way, on: session)
                    #expect(Self.isShut(outcome), "\(door.name) by \(way.name): \(outcome)")
                    cells += 1
                }
                await session.close()
            }
            // The same calls, of the login that is trusted.
            let gateway = Way(name: "the gateway", login: .gateway, session: "set role ROLE; \(Self.claims)")
            let session = try await Self.session(gateway, world: world, intruder: intruder)
            var open = 0
            for statement in statements
            where try await !Self.isShut(Self.outcome(of: statement, way: gateway, on: session)) {
                open += 1
            }
            await session.close()
            #expect(open >= doors.count * 3 / 4, "only \(open) of \(doors.count) doors open for the gateway")
            let traps = try await Self.spring(statements, in: world)
            print(
                "identities: \(Self.ways.count) ways × \(doors.count) doors = \(cells) cells, and \(traps) calls out of \(Self.maintenance.count * 2) statements of maintenance: all shut; \(open) open for a gateway"
            )
            try await Self.close(world, intruder: intruder)
        }
    }

    @Test func `without claims a role that carries them sees nothing of people, and names no tenant`() async throws {
        try await DoorWorld.withOwnRoles { world in
            let intruder = world.names.stranger
            try await Self.open(world, intruder: intruder)
            let people = try await world.caller("signed in").connection
            let job = try await people.int("select millrace.enqueue('mine')")
            try await people.run(
                #"select set_config('request.jwt.claims', '{"sub": "alice", "tenant": "acme"}', false)"#)
            _ = try await people.int("select millrace.enqueue('mine')")
            let session = try await world.database.connect(as: intruder)
            try await session.run("set role \(world.signedIn)")
            #expect(try await session.int("select count(*) from millrace.own_jobs()") == 0)
            #expect(try await session.int("select count(*) from millrace.job(\(job))") == 0)
            for call in [
                "enqueue('mine', tenant => 'acme')", "enqueue('mine', tenant => 'person:alice')",
                "mail_send(array['a@b.example'], 's', 't', tenant => 'acme')",
            ] {
                #expect(try await session.refusal(of: "select millrace.\(call)")?.sqlState == "42501", "\(call)")
            }
            // A signal without a tenant reaches no job of a person.
            try await session.run("select millrace.signal('mine')")
            #expect(
                try await world.owner.int(
                    "select count(*) from millrace.signal s, millrace.job j where j.owner = s.owner and millrace.signal_reaches(s, j.id) and j.tenant is not null"
                )
                    == 0)
            // Its own login is a client as any other, with its own rows, under a tenant of its choice.
            try await session.run("reset role")
            _ = try await session.int("select millrace.enqueue('mine', tenant => 'acme')")
            #expect(try await session.int("select count(*) from millrace.own_jobs()") == 1)
            #expect(
                try await session.refusal(of: "select millrace.enqueue('mine', tenant => 'person:alice')")?.sqlState
                    == "42501")
            for connection in [people, session] { await connection.close() }
            try await Self.close(world, intruder: intruder)
        }
    }

    @Test func `a login is trusted once an admin has named it, and no longer than that`() async throws {
        try await DoorWorld.withOwnRoles { world in
            let office = try await TestCluster.office()
            let login = TestCluster.name("proxy")
            try await office.run("create role \(login) login noinherit; grant \(world.signedIn) to \(login)")
            let session = try await world.database.connect(as: login)
            try await session.run("set role \(world.signedIn); \(Self.claims)")
            let own = "select millrace.streak('alice')"
            let refusal = try await session.refusal(of: own)
            #expect(refusal?.sqlState == "42501" && refusal?.hint?.contains("trust_claims('\(login)')") == true)
            let admin = try await world.caller("admin").connection
            #expect(try await admin.bool("select millrace.trust_claims('\(login)')"))
            #expect(try await !admin.bool("select millrace.trust_claims('\(login)')"))
            #expect(try await session.refusal(of: own) == nil)
            #expect(try await session.refusal(of: "select millrace.streak('bob')")?.sqlState == "42501")
            // Not by a login of the same name as a group, nor as a role that logs in.
            #expect(
                try await admin.refusal(of: "select millrace.trust_claims('\(world.signedIn)')")?.sqlState == "22023")
            #expect(try await admin.refusal(of: "select millrace.trust_claims('nobody_at_all')")?.sqlState == "P0002")
            try await session.run("set role none; \(Self.claims)")
            #expect(try await session.refusal(of: own)?.sqlState == "42501")
            try await session.run("set role \(world.signedIn)")
            #expect(try await admin.bool("select millrace.distrust_claims('\(login)')"))
            #expect(try await session.refusal(of: own)?.sqlState == "42501")
            #expect(
                try await world.owner.column("select action from millrace.audit where object = '\(login)' order by id")
                    == ["role.trust_claims", "role.distrust_claims"])
            for bad in [
                #"{"sub": " "}"#, #"{"sub": "alice", "tenant": "person:bob"}"#,
                #"{"sub": "alice", "tenant": "family:f"}"#,
            ] {
                try await world.owner.run("select millrace.trust_claims('\(login)')")
                try await session.run("select set_config('request.jwt.claims', '\(bad)', false)")
                #expect(try await session.refusal(of: own)?.sqlState == "42501", "\(bad)")
                #expect(
                    try await session.refusal(of: "select count(*) from millrace.own_jobs()")?.sqlState == "42501",
                    "\(bad)")
            }
            for connection in [session, admin] { await connection.close() }
            try await office.run("drop owned by \(login)")
            try await world.owner.run("select millrace.distrust_claims('\(login)')")
            try await office.run("drop role \(login)")
            await office.close()
        }
    }

    // MARK: -

    /// An app's login that was granted the role, and what it builds in a schema that everybody may use.
    private static func open(_ world: DoorWorld, intruder: String) async throws {
        let root = try await world.database.connect()
        try await root.run(
            """
            grant \(world.names.client), \(world.signedIn) to \(intruder);
            grant \(world.signedIn) to \(world.names.owner), \(world.anon); grant \(world.anon) to \(intruder);
            select millrace.grant_enqueue('\(intruder)', 'mine');
            create schema identity; grant all on schema identity to public;
            create function identity.called(statement text) returns text language plpgsql as $$
            declare said text;
            begin execute statement into said; return said; end $$;
            create function identity.local(statement text) returns text language plpgsql as $$
            declare said text;
            begin perform set_config('role', '\(world.signedIn)', true); execute statement into said; return said; end $$;
            create function identity.tell(statement text) returns void language sql as $$ select set_config('identity.told', statement, false) $$
            """)
        let session = try await world.database.connect(as: intruder)
        try await session.run(
            """
            set role \(world.signedIn);
            create function identity.as_role(statement text) returns text language plpgsql security definer as $$
            declare said text;
            begin perform set_config('request.jwt.claims', '{"sub": "alice"}', true); execute statement into said; return said; end $$;
            create view identity.seen as select identity.as_role(current_setting('identity.told')) as said;
            create function identity.fired() returns trigger language plpgsql security definer as $$
            begin new.said := identity.as_role(new.said); return new; end $$;
            create table identity.bait (said text);
            create trigger fires before insert on identity.bait for each row execute function identity.fired();
            create table identity.guarded (said text);
            insert into identity.guarded values ('');
            alter table identity.guarded enable row level security;
            create policy guards on identity.guarded to public using (identity.as_role(current_setting('identity.told')) is not null);
            create table identity.filled (said text default identity.as_role(current_setting('identity.told')));
            grant all on all tables in schema identity to public
            """)
        await session.close()
        await root.close()
    }

    private static func close(_ world: DoorWorld, intruder: String) async throws {
        let root = try await world.database.connect()
        try await root.run(
            "drop schema identity cascade; drop owned by \(intruder); revoke \(world.names.client), \(world.signedIn) from \(intruder), \(world.names.owner), \(world.anon); revoke \(world.anon) from \(intruder)"
        )
        await root.close()
    }

    private static func session(_ way: Way, world: DoorWorld, intruder: String) async throws -> Connection {
        let session =
            switch way.login {
            case .intruder: try await world.database.connect(as: intruder)
            case .owner: try await world.database.connect(as: world.names.owner)
            case .superuser: try await world.database.connect()
            case .gateway: try await world.database.connect(as: world.gateway)
            }
        try await session.run(
            way.session.replacing("BETWEEN", with: world.anon).replacing("ROLE", with: world.signedIn))
        return session
    }

    /// What a call came to: its SQLSTATE, or what it gave.
    private static func outcome(of statement: String, way: Way, on session: Connection) async throws -> String {
        let steps = way.call.replacing("CALL", with: statement).components(separatedBy: "; ")
        try await session.run("begin")
        for step in steps.dropLast() { try await session.run(step) }
        let outcome: String
        if let refusal = try await session.refusal(of: steps[steps.count - 1]) {
            outcome = refusal.sqlState
        } else {
            try await session.run("rollback; begin")
            for step in steps.dropLast() { try await session.run(step) }
            outcome = "gave \(try await session.value(steps[steps.count - 1]) ?? "")"
        }
        try await session.run("rollback")
        return outcome
    }

    private static func isShut(_ outcome: String) -> Bool { ["42501", "P0002", "gave "].contains(outcome) }

    /// Index expressions and a materialized view of the role, evaluated in statements of a superuser and of the database's owner.
    private static func spring(_ statements: [String], in world: DoorWorld) async throws -> Int {
        let session = try await world.database.connect(as: world.names.stranger)
        try await session.run(
            """
            set role \(world.signedIn);
            create table identity.act (n int generated always as identity, statement text);
            create table identity.log (session text, statement text, outcome text);
            create function identity.tried() returns int language plpgsql as $$
            declare
                one record;
                said text;
            begin
                for one in select a.statement from identity.act a order by a.n loop
                    begin
                        perform set_config('request.jwt.claims', '{"sub": "alice"}', true);
                        execute one.statement into said;
                        insert into identity.log values (session_user, one.statement, 'gave ' || coalesce(said, ''));
                    exception when others then
                        insert into identity.log values (session_user, one.statement, sqlstate);
                    end;
                end loop;
                return 1;
            end $$;
            create function identity.spied(x int) returns int language plpgsql immutable as $$ begin return identity.tried(); end $$;
            create table identity.indexed (a int);
            create index indexed_by on identity.indexed (a);
            create index on identity.indexed (identity.spied(a));
            create materialized view identity.kept as select identity.tried()
            """)
        for statement in statements {
            try await session.run("insert into identity.act (statement) values ($act$\(statement)$act$)")
        }
        try await session.run(
            "insert into identity.indexed select n from generate_series(1, 3) n; truncate identity.log")
        await session.close()
        for login in [nil, world.names.owner] {
            let connection =
                if let login { try await world.database.connect(as: login) } else { try await world.database.connect() }
            for statement in maintenance { _ = try await connection.refusal(of: statement) }
            await connection.close()
        }
        let found = try await world.database.connect()
        let gained = try await found.records(
            "select session, statement, outcome from identity.log where outcome not in ('42501', 'P0002', 'gave ') and session <> '\(world.names.stranger)' limit 10"
        )
        #expect(gained.isEmpty, "\(gained)")
        let n = try await found.int("select count(*) from identity.log where session <> '\(world.names.stranger)'")
        #expect(n >= statements.count, "the traps were not sprung")
        await found.close()
        return n
    }
}
