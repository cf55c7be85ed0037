import MillraceQueues
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// What strangers plant in `public` does not run with the rights of the login that calls a verb.
@Suite struct VerbOverloadTests {
    /// Runs `body` with a login of its own that is no superuser and has the admin's rights.
    private static func withAdmin(_ body: (TestDatabase, String) async throws -> Void) async throws {
        let office = try await TestCluster.office()
        let (admin, login) = (TestCluster.name("admin"), TestCluster.name("login"))
        try await office.run("create role \(admin); create role \(login) login in role \(admin)")
        try await withDatabase(.planted) { database in
            let owner = try await database.connect()
            _ = try await Migrator.ofAllRooms(roles: [("admin", admin)]).migrate(on: owner)
            await owner.close()
            try await body(database, login)
        }
        try await office.run("drop role \(login); drop role \(admin)")
        await office.close()
    }

    @Test(arguments: [false, true]) func `no verb calls what a stranger has planted`(isPooled: Bool) async throws {
        guard !isPooled || TestPooler.program != nil else { return }
        try await Self.withAdmin { database, login in
            #expect(try await PlantedOverloads.sprung(in: database) == [])
            func walk(_ url: String) async throws {
                var refused: [String] = []
                try await JSONContractTests.walk(database, as: url) { row, code, capture in
                    if ![.done, .degraded, .critical, .jobDied].contains(code) {
                        refused.append("\(row.line): \(capture.errors)")
                    }
                }
                #expect(refused.count <= 12, "\(refused)")
                #expect(try await PlantedOverloads.sprung(in: database) == [])
            }
            if isPooled {
                try await withPooler(to: database, as: login, servers: 4) { try await walk($0.location) }
            } else {
                try await walk(database.url.replacing("//millrace@", with: "//\(login)@"))
            }
        }
    }

    /// As the owner, who is a superuser here.
    @Test func `neither the doctor nor a migration calls what a stranger has planted`() async throws {
        try await withDatabase(.planted) { database in
            for verb in [["doctor"], ["migrate"], ["migrate", "--dry-run"], ["status"], ["rooms"]] {
                _ = await Application.run(
                    arguments: verb + ["--database-url", database.url], surroundings: .fake(),
                    console: Capture().console)
            }
            let sprung = try await PlantedOverloads.sprung(in: database)
            #expect(sprung == [])
        }
    }

    @Test func `what is planted is called where the default path is searched`() async throws {
        try await withDatabase(.planted) { database in
            let connection = try await database.connect()
            for (call, name) in [
                ("to_json(gen_random_uuid())", "to_json(uuid)"), ("(select array_agg(1::bigint))", "array_agg(bigint)"),
                ("'a'::text || 2", "text || integer"), ("format('%s', 'x'::text)", "format(text, variadic text[])"),
                ("(select to_jsonb(q) from millrace.queue q limit 1)", nil),
                ("(select count(x) from (select 1, 2) x)", "count(record)"),
                ("now() - 3 * interval '1 s'", "integer * interval"),
            ] {
                #expect(try await PlantedOverloads.sprung(in: database) == [])
                try await connection.run("select \(call)")
                #expect(try await PlantedOverloads.sprung(in: database) == [], "\(call)")
                try await connection.run("reset search_path; select \(call); set search_path = pg_catalog, pg_temp")
                let sprung = try await PlantedOverloads.sprung(in: database)
                if let name { #expect(sprung.map { $0.hasPrefix("\(name) by millrace") } == [true], "\(call)") }
            }
            await connection.close()
        }
    }
}
