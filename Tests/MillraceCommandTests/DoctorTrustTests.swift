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

    private static let subjects: [Subject] = [.schemaOwner, .schemaContents, .searchPaths, .rightsOfOthers]

    @Test func `the doctor finds what does not belong into the schema, and who has rights there`() async throws {
        let office = try await TestCluster.office()
        let role = TestCluster.name("cl")
        try await office.run("create role \(role) login")
        try await withDatabase { database in
            func expectWell() async throws {
                let checks = try await Self.checks(database.url)
                for subject in Self.subjects { #expect(checks[subject.rawValue]?.result == "ok", "\(subject)") }
            }
            func expectProblem(_ subject: Subject, _ sentence: String, plant: String, remove: String) async throws {
                try await database.change(plant)
                let check = try #require(try await Self.checks(database.url)[subject.rawValue])
                #expect(check.result == "problem" && check.sentence.contains(sentence), "\(check)")
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
            #expect(try await Self.checks(url)["schema contents"]?.sentence.contains("the owner can tell") == true)
        }
        try await office.run("drop role \(role)")
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
