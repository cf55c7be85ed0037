import CPostgres
import FoundationEssentials

/// The database's location in libpq's terms, and our settings.
package struct ConnectionOptions: Sendable {
    /// Prepared statements: `auto` gives them up when a pooler turns out to mix them up.
    package enum Prepare: String, Sendable, CaseIterable {
        case auto, on, off
    }

    /// A URI or key=value string; empty means libpq's own PG* variables.
    package var location: String
    package var prepare: Prepare
    package var connectDeadline: Duration
    package var statementDeadline: Duration
    package var applicationName: String
    /// For a location without a password: PGPASSWORD as it was at the start, because libpq reads the variable for every connection, and we
    /// have removed it by then.
    package var password: String?
    /// About the most bytes of an answer. At a larger answer the statement is cancelled and fails with 54000. nil: no limit.
    package var mostAnswerBytes: Int?
    /// The few connections of this process; nil: each part opens its own.
    package var budget: ConnectionBudget?
    /// Only with a budget.
    package var urgency = Urgency.work

    package init(
        location: String, prepare: Prepare = .auto, connectDeadline: Duration = .seconds(10),
        statementDeadline: Duration = .seconds(10), applicationName: String = "millrace",
        password: String? = nil
    ) {
        self.location = location
        self.prepare = prepare
        self.connectDeadline = connectDeadline
        self.statementDeadline = statementDeadline
        self.applicationName = applicationName
        self.password = password
    }

    /// The parameters for libpq: the location as `dbname`, and our defaults for what it leaves open.
    func keywords() throws(PostgresError) -> [(String, String)] {
        let given = try Self.parse(location)
        var pairs = [("fallback_application_name", applicationName)]
        // A dead peer shows in half a minute, not in two hours.
        for (key, value) in [
            ("keepalives_idle", "10"), ("keepalives_interval", "5"), ("keepalives_count", "3"),
            ("tcp_user_timeout", "25000"),
        ] where given[key] == nil {
            pairs.append((key, value))
        }
        let hosts = given["host"] ?? given["hostaddr"] ?? ""
        if hosts.contains(","), given["target_session_attrs"] == nil {
            pairs.append(("target_session_attrs", "read-write"))
        }
        if let password, given["password"] == nil { pairs.append(("password", password)) }
        pairs.append(("client_encoding", "UTF8"))
        if !location.isEmpty {
            pairs.append(("dbname", location))
        }
        return pairs
    }

    /// The servers to try, one after the other: libpq's own list has a single deadline for all when it connects without blocking, and
    /// a host that is silent would use it up. One attempt when there is one host, or when they must be weighed against each other.
    func attempts() throws(PostgresError) -> [[(String, String)]] {
        let given = try Self.parse(location)
        func list(_ key: String) -> [String] {
            (given[key] ?? "").split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        }
        let (hosts, addresses, ports) = (list("host"), list("hostaddr"), list("port"))
        let count = max(hosts.count, addresses.count)
        guard count > 1, given["target_session_attrs"] != "prefer-standby" else { return [[]] }
        return (0..<count).map { index in
            var pairs: [(String, String)] = []
            if index < hosts.count, given["host"] != nil { pairs.append(("host", hosts[index])) }
            if index < addresses.count, given["hostaddr"] != nil { pairs.append(("hostaddr", addresses[index])) }
            if given["port"] != nil {
                pairs.append(("port", ports.count == 1 ? ports[0] : ports[min(index, ports.count - 1)]))
            }
            return pairs
        }
    }

    /// Everything wrong with the location, without connecting.
    package func check() throws(PostgresError) {
        _ = try Self.parse(location)
    }

    /// The parts of the location that may be shown: user, host and database.
    package var summary: String {
        guard let given = try? Self.parse(location) else { return "(malformed)" }
        let user = given["user"].map { "\($0)@" } ?? ""
        let host = given["host"] ?? given["hostaddr"] ?? "local socket"
        let port = given["port"].map { ":\($0)" } ?? ""
        return "\(user)\(host)\(port)/\(given["dbname"] ?? "")"
    }

    /// The same place, but another of its server's databases.
    package static func location(_ location: String, database: String) throws(PostgresError) -> String {
        var given = try parse(location)
        given["dbname"] = database
        return given.sorted { $0.key < $1.key }.map { key, value in
            "\(key)='\(value.replacing("\\", with: "\\\\").replacing("'", with: "\\'"))'"
        }.joined(separator: " ")
    }

    private static func parse(_ location: String) throws(PostgresError) -> [String: String] {
        if location.utf8.contains(0) { throw .misconfigured(reason: "the database URL holds a NUL byte") }
        guard !location.isEmpty else { return [:] }
        guard location.contains("=") || location.contains("://") else {
            throw .misconfigured(reason: "the database URL is neither a postgresql:// URI nor key=value pairs")
        }
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(location, &message) else {
            defer { PQfreemem(message) }
            // libpq's message may quote the value, and with it a password: say only what kind of thing is wrong.
            throw .misconfigured(
                reason: "the database URL is malformed (see the form postgresql://user@host:port/database)")
        }
        defer { PQconninfoFree(options) }
        var found: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val {
                found[String(cString: keyword)] = String(cString: value)
            }
            option += 1
        }
        // libpq takes what follows an unencoded @ or : in a password for a host or a port, and its error messages quote those.
        for place in ["host", "hostaddr", "port"] where found[place]?.contains("@") == true {
            throw .misconfigured(reason: "the database URL holds an @ in a \(place): write it as %40 in a password")
        }
        if let port = found["port"], !port.allSatisfy({ ($0.isASCII && $0.isNumber) || $0 == "," }) {
            throw .misconfigured(reason: "the port in the database URL is not a number")
        }
        return found
    }
}
