import MillraceQueues
import Postgres
import RoomSchemas
import Schema

extension Command {
    static func migrate(_ known: [RoomSchema]) -> Command {
        Command(
            ["migrate"],
            summary: "Bring the database to this program's schema",
            discussion: """
                Safe to run again, from many places at once, and while workers run. Everything happens in one transaction. \
                Needs no superuser: a role that may create a schema in the database, or that owns the schema millrace.
                A first migrate makes the core: the queue and what belongs to it. Rooms, such as mail, are added by --rooms or later by millrace rooms \
                add; every migrate brings those that are installed to this program's schema, too.
                """,
            flags: [
                .single(
                    "rooms", "LIST", environment: .none,
                    help: "Add these rooms, separated by commas, with what they need; or all."),
                .toggle("dry-run", environment: .none, help: "Print the SQL and change nothing."),
                .toggle(
                    "print-roles", environment: .none,
                    help: "Print the SQL that makes the six roles, and change nothing."
                ),
                .toggle(
                    "test-clock", environment: .none, help: "Install a clock that tests can move; never in production."),
                Setting.clientRole.flag, Setting.workerRole.flag, Setting.adminRole.flag, Setting.viewerRole.flag,
                Setting.operatorRole.flag, Setting.gatewayRole.flag,
            ],
            examples: [
                Example("millrace migrate", "make or update the schema"),
                Example("millrace migrate --rooms mail,documents", "with these rooms; see millrace rooms list"),
                Example("millrace migrate --dry-run | less", "read it first"),
                Example(
                    "millrace migrate --print-roles | psql mydb", "the roles; then migrate again, which grants to them"),
            ]
        ) { invocation in try await migrate(invocation, known) }
    }

    private static func migrate(_ invocation: Invocation, _ known: [RoomSchema]) async throws -> ExitCode {
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
        let adding = try Self.rooms(named: invocation.parsed.string("rooms"), known)
        let migrator = Migrator(
            rooms: known, adoption: RoomSchemas.adoption, adding: adding,
            roles: roles.map { (role: $0.0, name: $0.1) },
            testClock: invocation.parsed.isOn("test-clock"))
        if invocation.parsed.isOn("dry-run") {
            let scripts = try migrator.scriptsOfNewSchema()
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
            let report = try await migrator.migrating(on: connection)
            console.show([
                "schema": .init(report.version), "rooms": .init(report.rooms), "applied": .init(report.applied),
                "notes": .init(report.notes),
            ]) {
                for name in report.applied { console.print("applied \(name)") }
                console.print(
                    report.applied.isEmpty
                        ? "the schema is up to date (version \(report.version)); functions refreshed"
                        : "the schema is at version \(report.version)")
                if report.isNew, report.rooms.isEmpty {
                    console.print(
                        "this is the core alone; millrace rooms list shows what can be added, such as mail:")
                    console.print("  millrace migrate --rooms mail,documents, or --rooms all")
                }
                for note in report.notes { console.print(note) }
            }
            for sentence in try await ClaimTrust.look(on: connection).warnings { console.warning(sentence) }
            return .done
        }
    }

    private static func rooms(named list: String?, _ known: [RoomSchema]) throws -> [String] {
        guard let list else { return [] }
        if list == "all" { return known.map(\.name) }
        let names = list.split(separator: ",").map { $0.filter { $0 != " " } }.filter { !$0.isEmpty }
        for name in names where !known.contains(where: { $0.name == name }) {
            throw Failure(
                .misused, "--rooms: there is no room \(name)",
                hint: "the rooms are: \(known.map(\.name).joined(separator: ", ")); or all")
        }
        return names
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

extension Migrator {
    /// Migrates, and tells what went wrong as a command does.
    func migrating(on connection: Connection) async throws -> Report {
        do throws(Migrator.Failure) {
            return try await migrate(on: connection)
        } catch {
            switch error {
            case .database(let cause):
                let failure = DatabaseFailure(cause)
                throw Composition.Failure(
                    failure.exitCode == .schemaMismatch ? .failed : failure.exitCode,
                    "the migration failed and changed nothing: \(cause)", hint: failure.hint)
            case .noSuchRoom, .notInstalled: throw Composition.Failure(.notFound, error.description)
            case .roomIsNeeded, .roomIsUsed: throw Composition.Failure(.conflict, error.description)
            case .roomHasRows:
                throw Composition.Failure(
                    .conflict, error.description, hint: "--with-data removes the room with all of its rows")
            default:
                if error.refusesSchema { throw Composition.Failure(.schemaMismatch, error.description) }
                throw error
            }
        }
    }
}
