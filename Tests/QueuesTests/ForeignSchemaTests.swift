import Foundation
import MillraceQueues
import Postgres
import Schema
import TestSupport
import Testing

/// A schema's functions run with its owner's rights, so it must contain nothing that its owner's migrations did not make.
@Suite struct ForeignSchemaTests {
    /// In a schema of a superuser, and in one of a role that is none.
    private static func withOwner(superuser: Bool, _ body: (TestDatabase, Connection) async throws -> Void) async throws
    {
        let office = try await TestCluster.office()
        let role = TestCluster.name("owner")
        try await office.run("create role \(role) login \(superuser ? "superuser" : "nosuperuser")")
        try await withDatabase(.empty, owner: role) { database in
            let connection = try await database.connect(as: role)
            _ = try await Migrator.asTested().migrate(on: connection)
            try await body(database, connection)
            await connection.close()
        }
        try await office.run("drop role \(role)")
        await office.close()
    }

    private static func refusal(_ connection: Connection) async throws -> Migrator.Failure? {
        do throws(Migrator.Failure) {
            _ = try await Migrator.asTested().migrate(on: connection)
            return nil
        } catch {
            return error
        }
    }

    /// How an object is planted, its name in the refusal, and how it is removed.
    private static let plants = [
        (
            "create function millrace.aaa_erase_person(text) returns bigint language sql as 'select 1::bigint'",
            "function millrace.aaa_erase_person(pg_catalog.text)", "drop function millrace.aaa_erase_person(text)"
        ),
        (
            "create function millrace.cancel(numeric) returns bool language sql as 'select true'",
            "function millrace.cancel(numeric)", "drop function millrace.cancel(numeric)"
        ),
        (
            "create procedure millrace.p() language sql as 'select 1'", "procedure millrace.p()",
            "drop procedure millrace.p()"
        ),
        ("create table millrace.mine (n int)", "table millrace.mine", "drop table millrace.mine"),
        (
            "create table millrace.child () inherits (millrace.setting)", "table millrace.child",
            "drop table millrace.child"
        ),
        ("create view millrace.v as select 1 as n", "view millrace.v", "drop view millrace.v"),
        ("create sequence millrace.s", "sequence millrace.s", "drop sequence millrace.s"),
        ("create type millrace.mood_kind as enum ('a')", "type millrace.mood_kind", "drop type millrace.mood_kind"),
        ("create domain millrace.d as int", "type millrace.d", "drop domain millrace.d"),
        (
            "create operator millrace.=== (leftarg = text, rightarg = text, function = texteq)",
            "operator millrace.===(pg_catalog.text,pg_catalog.text)", "drop operator millrace.=== (text, text)"
        ),
        (
            "create cast (millrace.queue as text) with inout as assignment", "cast (millrace.queue AS pg_catalog.text)",
            "drop cast (millrace.queue as text)"
        ),
        (
            "create trigger t before update on millrace.setting for each row execute function suppress_redundant_updates_trigger()",
            "trigger t on millrace.setting", "drop trigger t on millrace.setting"
        ),
        (
            "create rule r as on delete to millrace.setting do instead nothing", "rule r on millrace.setting",
            "drop rule r on millrace.setting"
        ),
        ("create policy p on millrace.setting", "policy p on millrace.setting", "drop policy p on millrace.setting"),
    ]

    @Test(arguments: [true, false]) func `what no migration made is refused by name until it is gone`(superuser: Bool)
        async throws
    {
        try await Self.withOwner(superuser: superuser) { _, connection in
            for plant in Self.plants { try await connection.run(plant.0) }
            guard case .foreignObjects(let objects, let owner) = try await Self.refusal(connection) else {
                Issue.record("it was accepted")
                return
            }
            #expect(Set(objects.map { "\($0.kind) \($0.identity)" }) == Set(Self.plants.map(\.1)))
            #expect(objects.allSatisfy { $0.owner == owner })
            // One is enough; the rehearsal says the same, and nothing was changed by either.
            for plant in Self.plants.dropLast() { try await connection.run(plant.2) }
            for failure in [try await Self.refusal(connection), try await Migrator.objection(on: connection)] {
                let sentence = try #require(failure).description
                #expect(sentence.contains("policy p on millrace.setting, owned by \(owner)"))
                #expect(sentence.contains("set schema") && failure?.refusesSchema == true)
            }
            try await connection.run(Self.plants[Self.plants.count - 1].2)
            #expect(try await Migrator.objection(on: connection) == nil)
            _ = try await Migrator.asTested().migrate(on: connection)
            _ = try await Migrator.asTested().migrate(on: connection)
        }
    }

    @Test(arguments: [true, false]) func `what another role owns is refused with its owner's name`(superuser: Bool)
        async throws
    {
        let office = try await TestCluster.office()
        let role = TestCluster.name("cl")
        try await office.run("create role \(role) login")
        try await Self.withOwner(superuser: superuser) { database, connection in
            try await connection.run("grant usage, create on schema millrace to \(role)")
            let other = try await database.connect(as: role)
            try await other.run(
                "create function millrace.aaa_erase_person(text) returns bigint language sql as 'select 1::bigint'")
            // That it says it was made does not help it.
            try await connection.run(
                "insert into millrace.made values ('function', 'millrace.aaa_erase_person(pg_catalog.text)')")
            let sentence = try await Self.refusal(connection)?.description ?? ""
            #expect(sentence.contains("millrace.aaa_erase_person(pg_catalog.text), owned by \(role)"))
            try await other.run("drop function millrace.aaa_erase_person(text)")
            _ = try await Migrator.asTested().migrate(on: connection)
            await other.close()
        }
        try await office.run("drop role \(role)")
        await office.close()
    }

    @Test func `a schema that another role made is refused, though the migrator is a superuser`() async throws {
        let office = try await TestCluster.office()
        let role = TestCluster.name("cl")
        try await office.run("create role \(role) login")
        try await withDatabase(.empty) { database in
            let superuser = try await database.connect()
            try await superuser.run("grant create on database \(database.name) to \(role)")
            let other = try await database.connect(as: role)
            try await other.run(
                """
                create schema millrace;
                create function millrace.aaa_erase_person(text) returns bigint language sql as 'select 1::bigint'
                """)
            for failure in [try await Self.refusal(superuser), try await Migrator.objection(on: superuser)] {
                guard case .foreignSchema(let owner, "millrace") = failure else {
                    Issue.record("\(String(describing: failure))")
                    return
                }
                #expect(owner == role)
            }
            #expect(try await superuser.value("select to_regclass('millrace.migration')") == nil)
            // Its owner sees what it has made itself, and then what it makes later.
            #expect(try await Self.refusal(other)?.description.contains("aaa_erase_person") == true)
            try await other.run("drop function millrace.aaa_erase_person(text)")
            _ = try await Migrator.asTested().migrate(on: other)
            await other.close()
            await superuser.close()
        }
        try await office.run("drop role \(role)")
        await office.close()
    }

    @Test func `in a schema that nothing was written down of, only the table of migrations is taken for ours`()
        async throws
    {
        try await withDatabase(.empty) { database in
            let connection = try await database.connect()
            try await connection.run(
                "create schema millrace; create function millrace.wake_ready(int) returns void language sql as ''")
            guard case .foreignObjects(let objects, _) = try await Self.refusal(connection) else {
                Issue.record("it was accepted")
                return
            }
            #expect(objects.map(\.identity) == ["millrace.wake_ready(integer)"])
            try await connection.run("drop function millrace.wake_ready(int)")
            _ = try await Migrator.asTested().migrate(on: connection)
            await connection.close()
        }
    }

    @Test func `a migration drops the functions that it does not make any more, and writes down what there is`()
        async throws
    {
        try await withConnection { connection in
            try await connection.run(
                """
                create function millrace.claim_turn(int, int) returns void language sql as '';
                insert into millrace.made values ('function', 'millrace.claim_turn(integer,integer)')
                """)
            let before = try await connection.column(
                "select oid::regprocedure from pg_proc where pronamespace = 'millrace'::regnamespace order by 1")
            _ = try await Migrator.asTested().migrate(on: connection)
            let after = try await connection.column(
                "select oid::regprocedure from pg_proc where pronamespace = 'millrace'::regnamespace order by 1")
            #expect(Set(before).subtracting(after) == ["millrace.claim_turn(integer,integer)"])
            #expect(
                try await connection.int("select count(*) from millrace.made where kind in ('function', 'aggregate')")
                    == after.count)
            #expect(try await connection.int("select count(*) from millrace.made where identity ~ '_[0-9]{8}$'") == 0)
        }
    }

    @Test func `nobody is given anything by default, and nothing that maintenance makes is open`() async throws {
        try await withConnection(.movableClock) { connection in
            func opened() async throws -> [String] {
                try await SchemaRights.look(configured: [], on: connection).everybody
            }
            #expect(try await opened() == [])
            try await connection.run(
                """
                alter default privileges in schema millrace grant all on tables to public;
                alter default privileges in schema millrace grant execute on functions to public;
                select millrace.test_clock_advance('40 days'); select setval('millrace.seq', 40000000)
                """)
            #expect(try await connection.int("select made from millrace.maintain()") > 5)
            #expect(try await opened() == [])
            _ = try await Migrator.asTested().migrate(on: connection)
            #expect(try await opened() == [])
            #expect(
                try await connection.int(
                    "select count(*) from pg_default_acl d cross join lateral aclexplode(d.defaclacl) a where a.grantee = 0"
                )
                    == 0)
        }
    }

    @Test func `every function with the owner's rights says where names are looked up, but for those that are listed`()
        async throws
    {
        try await withConnection { connection in
            let rights = try await SchemaRights.look(configured: [], on: connection)
            #expect(rights.unfixed == [])
            #expect(Schema.callersPathFunctions == ["enqueue_as"])
        }
    }

    @Test func `every table with a person in it is dealt with when a person is erased`() async throws {
        try await withConnection { connection in
            let missing = try await connection.column(
                """
                with erasers as (
                    select p.prosrc from pg_proc p
                     where p.pronamespace = 'millrace'::regnamespace
                       and p.proname in (select k.function from millrace.hook k where k.event = 'erase')
                )
                select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'person' and not a.attisdropped
                 where c.relnamespace = 'millrace'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
                   and not exists (select from erasers e where e.prosrc ~ (E'millrace[.]' || c.relname || E'\\\\M'))
                 order by 1
                """)
            #expect(missing == [])
            #expect(
                try await connection.int(
                    "select count(*) from pg_proc p where p.pronamespace = 'millrace'::regnamespace and p.prosrc ~ 'proname (~|like)'"
                )
                    == 0, "a function is found by a pattern")
        }
    }
}
