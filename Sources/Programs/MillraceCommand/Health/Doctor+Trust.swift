import MillraceQueues
import Postgres

/// Checks that the schema is its owner's alone: its functions run with the owner's rights, and the owner trusts everything in it.
extension Doctor {
    func trust() async -> [Check] {
        let settings = invocation.settings
        let configured = [settings.clientRole, settings.workerRole, settings.adminRole]
        do throws(PostgresError) {
            let (contents, rights, claims, overloads) = try await connection.transaction {
                connection throws(PostgresError) in
                try await SchemaContents.useOneSnapshot(on: connection)
                return (
                    try await SchemaContents.look(on: connection),
                    try await SchemaRights.look(configured: configured, on: connection),
                    try await ClaimTrust.look(on: connection),
                    try await Overloads.look(on: connection)
                )
            }
            guard let contents else { return [] }
            return [
                Check(subject: .schemaOwner, result: Self.judgeOwner(contents)),
                Check(subject: .schemaContents, result: Self.judge(contents)),
                Check(subject: .searchPaths, result: Self.judgePaths(rights, overloads)),
                Check(subject: .functionsOfOthers, result: Self.judge(overloads)),
                Check(subject: .rightsOfOthers, result: Self.judge(rights)),
                Check(subject: .claims, result: Self.judge(claims)),
            ]
        } catch {
            return [await look(.schemaContents) { () throws(PostgresError) in throw error }]
        }
    }

    static func judgeOwner(_ contents: SchemaContents) -> Check.Result {
        contents.isOwnersSuperuser
            ? .ok("\(contents.owner), a superuser; an ordinary role of its own would do")
            : .ok(contents.owner)
    }

    static func judge(_ contents: SchemaContents) -> Check.Result {
        guard contents.foreign.isEmpty else {
            return .problem(
                "what no migration made: \(SchemaObject.list(contents.foreign))",
                advice: "look at each, and drop it or move it to another schema; millrace migrate refuses until then")
        }
        return contents.isComplete
            ? .ok("only what migrations made") : .ok("all the owner's; only the owner can see what migrations made")
    }

    static func judgePaths(_ rights: SchemaRights, _ overloads: Overloads) -> Check.Result {
        guard overloads.path == "pg_catalog, pg_temp" else {
            return .problem(
                "this session looks for functions in \(overloads.path)",
                advice: "look for what stands between this program and the server and changes its sessions")
        }
        guard rights.unfixed.isEmpty else {
            return .problem(
                "the caller's search_path chooses what these find: \(few(rights.unfixed))",
                advice:
                    "run: millrace migrate; of functions that are not Millrace's: alter function … set search_path = pg_catalog, pg_temp"
            )
        }
        let unused = overloads.settings.isEmpty ? "" : "; the settings of \(few(overloads.settings)) do not change that"
        return .ok("fixed for our sessions, and in every function that callers reach\(unused)")
    }

    static func judge(_ overloads: Overloads) -> Check.Result {
        overloads.planted.isEmpty
            ? .ok("none stands before a system function")
            : .warning(
                "these stand before system functions of the same name: \(few(overloads.planted))",
                advice:
                    "Millrace does not look there, other programs may: drop those that nobody needs, and revoke create on their schema"
            )
    }

    static func judge(_ claims: ClaimTrust) -> Check.Result {
        if let login = claims.trusted.first(where: \.isSuperuser) {
            return .warning(
                "believed of \(login.name), a superuser",
                advice: "give the gateway a login of its own in the role millrace_gateway; "
                    + "then: select millrace.distrust_claims('\(login.name)')")
        }
        if let login = claims.unnamed.first {
            return .warning(
                "not believed of \(login.name), which has no rights of its own and may take on \(few(login.roles))",
                advice: "if it is a gateway such as PostgREST's: select millrace.trust_claims('\(login.name)')")
        }
        guard !claims.trusted.isEmpty else { return .ok("believed of no login: no gateway calls for people") }
        let others = claims.disbelieved.map { "\($0.name), which may take on \(few($0.roles))" }
        return .ok(
            "believed of \(few(claims.trusted.map(\.name)))" + (others.isEmpty ? "" : "; not of \(few(others))"))
    }

    static func judge(_ rights: SchemaRights) -> Check.Result {
        if !rights.creators.isEmpty {
            return .problem(
                "\(few(rights.creators)) may make objects in the schema, which its owner trusts",
                advice: "revoke create on schema millrace from each")
        }
        if !rights.everybody.isEmpty {
            return .problem(
                "everybody may use \(few(rights.everybody))", advice: "run: millrace migrate, which undoes it")
        }
        return .ok(rights.others.isEmpty ? "none" : "granted to \(few(rights.others)) beside the configured roles")
    }

    private static func few(_ names: [String]) -> String {
        names.prefix(10).joined(separator: ", ") + (names.count > 10 ? " and \(names.count - 10) more" : "")
    }
}
