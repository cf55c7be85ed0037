/// What can go wrong between us and the database.
package enum PostgresError: Error, Sendable, Equatable {
    /// The server answered with an error of its own.
    case server(ServerError)
    /// No connection could be made.
    case unreachable(reason: String)
    /// The connection broke; whether the last statement took effect is unknown.
    case lost(reason: String)
    /// The statement's deadline passed; it was cancelled on the server too.
    case timedOut(after: Duration)
    /// The caller's task was cancelled, and the statement with it.
    case cancelled
    /// No connection of the pool came free in time.
    case exhausted(size: Int, after: Duration)
    /// A column did not have the expected contents: the schema is a different one.
    case undecodable(column: Int, expected: String)
    /// The connection settings cannot be used.
    case misconfigured(reason: String)

    package struct ServerError: Error, Sendable, Equatable {
        package var sqlState: String
        package var message: String
        package var detail: String?
        package var hint: String?
        package var context: String?
        package var constraint: String?
    }
}

extension PostgresError: CustomStringConvertible, CustomDebugStringConvertible {
    /// A sentence for an operator. Never holds values of a statement or a connection string.
    package var description: String {
        switch self {
        case .server(let error):
            "The database refused: \(error.message)." + (error.hint.map { " \($0)" } ?? "")
        case .unreachable(let reason):
            "The database cannot be reached: \(reason)."
        case .lost(let reason):
            "The connection to the database was lost: \(reason)."
        case .timedOut(let after):
            "The database gave no answer within \(after)."
        case .cancelled:
            "The statement was cancelled."
        case .exhausted(let size, let after):
            "All \(size) connections stayed busy for \(after)."
        case .undecodable(let column, let expected):
            "Column \(column + 1) of an answer is not \(expected): the schema and this program do not match."
        case .misconfigured(let reason):
            "The database settings cannot be used: \(reason)."
        }
    }

    package var debugDescription: String {
        guard case .server(let error) = self else { return description }
        return "\(description) [\(error.sqlState)] \(error.detail ?? "") \(error.context ?? "")"
    }
}

extension PostgresError {
    package var sqlState: String? {
        if case .server(let error) = self { error.sqlState } else { nil }
    }

    /// The statement may or may not have taken effect.
    package var outcomeUnknown: Bool {
        switch self {
        case .lost, .timedOut, .cancelled: true
        case .server(let error):
            error.sqlState == "57P01" || error.sqlState == "57P02" || error.sqlState.hasPrefix("08")
        case .unreachable, .exhausted, .undecodable, .misconfigured: false
        }
    }

    /// The server is there but refuses us: a retry changes nothing until somebody corrects the settings. Recognised by libpq's text,
    /// because libpq gives no code here.
    package var isRejection: Bool {
        guard case .unreachable(let reason) = self else { return false }
        return ["authentication failed", "no password supplied", "no pg_hba.conf entry", "\" does not exist"].contains {
            reason.contains($0)
        }
    }

    /// All connections of the server, the database or the role are in use. By libpq's text, as above.
    package var saysConnectionsAreUsedUp: Bool {
        if sqlState == "53300" { return true }
        guard case .unreachable(let reason) = self else { return false }
        return ["too many clients already", "remaining connection slots are reserved", "too many connections for"]
            .contains { reason.contains($0) }
    }

    /// Says whose the connections are. A superuser gets one when others get none.
    package static let lookAtConnections =
        "psql -c 'select usename, application_name, state, count(*) from pg_stat_activity group by 1, 2, 3 order by 4 desc'"

    /// What to do where no connection is left; the same in every program.
    package static let connectionsHint =
        "end what holds them, use smaller pools, or raise max_connections; as a superuser, who still gets one: \(lookAtConnections)"

    /// The database is away or going away: the same call may succeed later. A statement that was too slow is no outage: the server is
    /// there, because it ended the statement when it was asked to.
    package var isOutage: Bool {
        switch self {
        case .unreachable, .lost, .exhausted: true
        case .server(let error):
            // 57P0x: shutdown, crash, cannot connect now, or an idle session ended; 08: connection; 53300: too many of them; 25006: a standby
            error.sqlState.hasPrefix("57P") || error.sqlState.hasPrefix("08") || error.sqlState == "53300"
                || error.sqlState == "25006" || isShortage
        case .timedOut, .cancelled, .undecodable, .misconfigured: false
        }
    }

    /// The statement passed its deadline, and the server has ended it.
    package var isSlowness: Bool {
        if case .timedOut = self { true } else { false }
    }

    /// Rolled back because of a concurrent transaction: the same call may succeed at once.
    package var isCollision: Bool {
        ["40P01", "40001"].contains(sqlState)
    }

    /// Nothing can be written now: the disk is full, or the server only reads.
    package var saysNothingIsWritten: Bool { ["53100", "25006"].contains(sqlState) }

    /// The database is there and lacks disk, memory or the like: the statement took no effect, and can succeed when that is mended.
    package var isShortage: Bool {
        ["53000", "53100", "53200", "58030"].contains(sqlState)
    }
}
