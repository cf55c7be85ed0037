import Glibc

/// The user that Postgres runs as: it refuses root.
struct User: Equatable {
    let id: uid_t
    let group: gid_t
    let name: String

    /// Our own user; if we are root, the owner of an existing cluster, else `postgres`, else `nobody`.
    static func toRun(_ directory: String) throws(ClusterError) -> User {
        guard geteuid() == 0 else { return User(id: geteuid(), group: getegid(), name: name(of: geteuid())) }
        if let status = ClusterFiles.status(directory + "/data"), status.owner != 0 {
            return User(id: status.owner, group: status.group, name: name(of: status.owner))
        }
        guard let found = named("postgres") ?? named("nobody") else { throw .noUserToRunAs }
        return found
    }

    var isSelf: Bool { id == geteuid() }

    /// The command that runs a program as this user.
    func command(_ program: String, _ arguments: [String]) -> (program: String, arguments: [String]) {
        guard !isSelf else { return (program, arguments) }
        let change = ["--reuid=\(id)", "--regid=\(group)", "--clear-groups", "--", program]
        return ("setpriv", change + arguments)
    }

    @available(*, noasync)
    func run(
        _ program: String, _ arguments: [String], input: String = "", within limit: WorkDeadline,
    ) throws(ClusterError) -> ProgramRun {
        let (program, arguments) = command(program, arguments)
        return try ProgramRun.run(program, arguments, input: input, within: limit)
    }

    static func name(of id: uid_t) -> String {
        lookUp { getpwuid_r(id, $0, $1, $2, $3) }?.name ?? String(id)
    }

    private static func named(_ name: String) -> User? {
        lookUp { getpwnam_r(name, $0, $1, $2, $3) }
    }

    private typealias Found = UnsafeMutablePointer<UnsafeMutablePointer<passwd>?>
    private static func lookUp(
        _ ask: (UnsafeMutablePointer<passwd>, UnsafeMutablePointer<CChar>, Int, Found) -> Int32,
    ) -> User? {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16_384)
        return buffer.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress, ask(&entry, start, buffer.count, &found) == 0, found != nil else {
                return nil
            }
            return User(id: entry.pw_uid, group: entry.pw_gid, name: String(cString: entry.pw_name))
        }
    }
}
