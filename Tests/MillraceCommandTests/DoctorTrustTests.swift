import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// Whether the schema is its owner's alone, as `doctor` and `migrate --dry-run` report it.
@Suite struct DoctorTrustTests {
    private static func checks(_ url: String) async throws -> [String: (result: String, sentence: String)] {
        let json = try JSONValue.read(await millrace("doctor", "--json", "--database-url", url).output)
        guard case .array(let checks)? = json["checks"] else { throw Failure("no checks") }
        var found: [String: (result: String, sentence: String)] = [:]
        for check in checks {
            found[check["check"]?.text ?? ""] = (check["result"]?.text ?? "", check["sentence"]?.text ?? "")
        }
        return found
    }

    private static let subjects: [Subject] = [
        .schemaOwner, .schemaContents, .searchPaths, .functionsOfOthers, .rightsOfOthers,
    ]

    @Test func `the doctor finds what does not belong into the schema, and who has rights there`() async throws {
        let office = try await TestCluster.office()
        let role = TestCluster.name("cl")
        try await office.run("create role \(role) login")
        try await withDatabase { database in
            func expectWell() async throws {
                let checks = try await Self.checks(database.url)
                for subject in Self.subjects { #expect(checks[subject.rawValue]?.result == "ok", "\(subject)") }
            }
            func expectProblem(
                _ subject: Subject, _ sentence: String, plant: String, remove: String, result: String = "problem"
            ) async throws {
                try await database.change(plant)
                let check = try #require(try await Self.checks(database.url)[subject.rawValue])
                #expect(check.result == result && check.sentence.contains(sentence), "\(check)")
                try await database.change(remove)
                try await expectWell()
            }
            try await expectWell()
            try await expectProblem(
                .schemaContents, "table millrace.mine, owned by millrace", plant: "create table millrace.mine ()",
                remove: "drop table millrace.mine")
            try await expectProblem(
                .schemaContents, "table millrace.job, owned by \(role)",
                plant: "alter table millrace.job owner to \(role)", remove: "alter table millrace.job owner to millrace"
            )
            try await expectProblem(
                .searchPaths, "millrace.queue_list()", plant: "alter function millrace.queue_list() reset search_path",
                remove: "alter function millrace.queue_list() set search_path = pg_catalog, pg_temp")
            // Nobody runs it with the owner's rights, but who looks at the view runs what it finds.
            try await expectProblem(
                .searchPaths, "millrace.operation_undo_span()",
                plant:
                    "create or replace function millrace.operation_undo_span() returns interval language sql immutable as $$ select interval '1 min' $$",
                remove:
                    "create or replace function millrace.operation_undo_span() returns interval language sql immutable return interval '10 minutes'"
            )
            try await database.change("alter role \(role) set search_path = public")
            #expect(
                try await Self.checks(database.url)["search paths"]?.sentence.contains("settings of role \(role)")
                    == true)
            for (plant, name) in [
                (
                    "function public.to_jsonb(record) returns jsonb language plpgsql as 'begin return null; end'",
                    "public.to_jsonb(record) of \(role)"
                ),
                (
                    "operator public.|| (leftarg = text, rightarg = int, function = public.joined)",
                    "public.||(text,integer) of \(role)"
                ),
            ] {
                try await expectProblem(
                    .functionsOfOthers, name,
                    plant: """
                        grant create on schema public to public; set role \(role);
                        create function public.joined(text, int) returns text language sql as 'select null::text';
                        create \(plant)
                        """, remove: "drop owned by \(role); revoke create on schema public from public",
                    result: "warning")
            }
            try await expectProblem(
                .rightsOfOthers, "everybody may use millrace.queue_list()",
                plant: "grant execute on function millrace.queue_list() to public",
                remove: "revoke execute on function millrace.queue_list() from public")
            try await expectProblem(
                .rightsOfOthers, "\(role) may make objects",
                plant: "grant create on schema millrace to \(role)",
                remove: "revoke create on schema millrace from \(role)")
            try await database.change("grant execute on function millrace.queue_list() to \(role)")
            #expect(
                try await Self.checks(database.url)["rights of others"]?.sentence
                    == "granted to \(role) beside the configured roles")
            // A role that may not read what migrations made sees only objects of other owners.
            let url = database.url.replacing("//millrace@", with: "//\(role)@")
            #expect(try await Self.checks(url)["schema contents"]?.sentence.contains("only the owner can see") == true)
        }
        try await office.run("drop role \(role)")
        await office.close()
    }

    @Test func `the doctor says whose claims are believed, and names who could take on the same role`() async throws {
        let office = try await TestCluster.office()
        let (client, gateway, app) = (TestCluster.name("client"), TestCluster.name("gw"), TestCluster.name("app"))
        let proxy = TestCluster.name("proxy")
        try await office.run(
            """
            create role \(client); create role \(gateway) login in role \(client); create role \(app) login in role \(client);
            create role \(proxy) login noinherit in role \(client)
            """)
        try await withDatabase(.empty) { database in
            #expect(await millrace("migrate", "--role-client", client, "--database-url", database.url).code == .done)
            func said() async throws -> String {
                let check = try #require(try await Self.checks(database.url)["claims of people"])
                return "\(check.result): \(check.sentence)"
            }
            #expect(try await said().hasPrefix("warning: not believed of \(proxy), which has no rights of its own"))
            try await database.change(
                "select millrace.trust_claims('\(proxy)'), millrace.trust_claims('\(gateway)')")
            #expect(
                try await said()
                    == "ok: believed of \(gateway), \(proxy); not of \(app), which may take on \(client)")
            try await database.change("select millrace.trust_claims('millrace')")
            #expect(try await said() == "warning: believed of millrace, a superuser")
            let migrated = await millrace("migrate", "--role-client", client, "--database-url", database.url)
            #expect(migrated.errors.contains("claims are believed of millrace, a superuser"), "\(migrated.errors)")
            try await database.change(
                "select millrace.distrust_claims(r) from unnest(array['millrace', '\(gateway)', '\(proxy)']) r; drop owned by \(client), \(gateway), \(proxy)"
            )
        }
        try await office.run("drop role \(proxy); drop role \(app); drop role \(gateway); drop role \(client)")
        await office.close()
    }

    @Test func `migrate and its rehearsal refuse a foreign object with the same sentence`() async throws {
        try await withDatabase { database in
            try await database.change("create table millrace.mine ()")
            let refused = await millrace("migrate", "--database-url", database.url)
            let rehearsed = await millrace("migrate", "--dry-run", "--database-url", database.url)
            for outcome in [refused, rehearsed] {
                #expect(outcome.code == .schemaMismatch)
                #expect(outcome.errors.contains("table millrace.mine, owned by millrace"), "\(outcome.errors)")
            }
            #expect(rehearsed.output.contains("create table millrace.job"))
            try await database.change("drop table millrace.mine")
            #expect(await millrace("migrate", "--dry-run", "--database-url", database.url).code == .done)
            #expect(await millrace("migrate", "--database-url", database.url).code == .done)
            // A rehearsal needs no database.
            let nowhere = await millrace("migrate", "--dry-run", "--database-url", "postgresql://127.0.0.1:1/x")
            #expect(nowhere.code == .done && nowhere.errors.contains("was not looked at"))
        }
    }
}
