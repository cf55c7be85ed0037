import Queues
import Schema

extension Command {
    static let migrate = Command(
        ["migrate"],
        summary: "Bring the database to this program's schema",
        discussion: """
            Safe to run again, from many places at once, and while workers run. Everything happens in one transaction. \
            Needs no superuser: a role that may create a schema in the database, or that owns the schema millrace.
            """,
        flags: [
            .toggle("dry-run", environment: .none, help: "Print the SQL and change nothing."),
            .toggle(
                "print-roles", environment: .none, help: "Print the SQL that makes the six roles, and change nothing."
            ),
            .toggle(
                "test-clock", environment: .none, help: "Install a clock that tests can move; never in production."),
            Setting.clientRole.flag, Setting.workerRole.flag, Setting.adminRole.flag, Setting.viewerRole.flag,
            Setting.operatorRole.flag, Setting.gatewayRole.flag,
        ],
        examples: [
            Example("millrace migrate", "make or update the schema"),
            Example("millrace migrate --dry-run | less", "read it first"),
            Example(
                "millrace migrate --print-roles | psql mydb", "the roles; then migrate again, which grants to them"),
        ]
    ) { invocation in
        let console = invocation.console
        let settings = invocation.settings
        let roles = [
            ("client", settings.clientRole), ("worker", settings.workerRole), ("admin", settings.adminRole),
            ("viewer", settings.viewerRole), ("operator", settings.operatorRole),
            ("gateway", settings.gatewayRole),
        ]
        if invocation.parsed.isOn("print-roles") {
            var lines = roles.map { "create role \(quoted(identifier: $0.1)) nologin;" }
            // It takes on the clients' role for each call.
            lines.append(
                "grant \(quoted(identifier: settings.clientRole)) to \(quoted(identifier: settings.gatewayRole));")
            console.show(["roles": .init(roles.map(\.1)), "sql": .string(lines.joined(separator: "\n"))]) {
                for line in lines { console.print(line) }
            }
            return .done
        }
        let migrator = Migrator(
            roles: roles.map { (role: $0.0, name: $0.1) }, testClock: invocation.parsed.isOn("test-clock"))
        if invocation.parsed.isOn("dry-run") {
            let scripts = migrator.scripts
            let json: JSONValue = [
                "dry_run": true, "schema": .int(Schema.version),
                "scripts": .array(
                    scripts.map {
                        ["name": .string($0.name), "sql": .string(String(decoding: $0.bytes, as: UTF8.self))]
                    }),
            ]
            console.show(json) {
                console.print(
                    "begin;\nset local search_path = pg_catalog, pg_temp;\ncreate schema if not exists millrace;")
                for script in scripts {
                    console.print("\n-- \(script.name)\n" + String(decoding: script.bytes, as: UTF8.self))
                }
                console.print("commit;")
            }
            return await objection(to: invocation)
        }
        return try await invocation.withConnection { connection in
            do {
                let report = try await migrator.migrate(on: connection)
                console.show([
                    "schema": .init(report.version), "applied": .init(report.applied),
                    "notes": .init(report.notes),
                ]) {
                    for name in report.applied { console.print("applied \(name)") }
                    console.print(
                        report.applied.isEmpty
                            ? "the schema is up to date (version \(report.version)); functions refreshed"
                            : "the schema is at version \(report.version)")
                    for note in report.notes { console.print(note) }
                }
                for sentence in try await ClaimTrust.look(on: connection).warnings { console.warning(sentence) }
                return .done
            } catch let refusal as Migrator.Failure where refusal.refusesSchema {
                throw Failure(.schemaMismatch, refusal.description)
            } catch Migrator.Failure.database(let error) {
                let failure = DatabaseFailure(error)
                throw Failure(
                    failure.exitCode == .schemaMismatch ? .failed : failure.exitCode,
                    "the migration failed and changed nothing: \(error)", hint: failure.hint)
            }
        }
    }

    /// For `--dry-run`, which needs no database. If one can be reached, this reports whether a migration would refuse it.
    private static func objection(to invocation: Invocation) async -> ExitCode {
        do {
            let refusal = try await invocation.withConnection { try await Migrator.objection(on: $0) }
            guard let refusal else { return .done }
            invocation.console.failure(refusal.description)
            return .schemaMismatch
        } catch {
            invocation.console.note("the database was not looked at: \(error)")
            return .done
        }
    }

    private static func quoted(identifier: String) -> String {
        "\"" + identifier.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
    }
}
