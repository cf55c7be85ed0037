/// A command's exit code. The numbers are a contract.
package enum ExitCode: Int32, Sendable, CaseIterable {
    case done = 0
    case failed = 1
    case misused = 2
    case notFound = 3
    case conflict = 4
    case unreachable = 5
    case schemaMismatch = 6
    case timedOut = 7
    case jobDied = 8
    case degraded = 10
    case critical = 11

    package var meaning: String {
        switch self {
        case .done: "done"
        case .failed: "failed"
        case .misused: "misused: a wrong flag, argument or setting"
        case .notFound: "not found"
        case .conflict: "conflict with what is there"
        case .unreachable: "the database cannot be reached"
        case .schemaMismatch: "the database's schema does not match this version"
        case .timedOut: "timed out while waiting"
        case .jobDied: "the awaited job died"
        case .degraded: "degraded (status, doctor)"
        case .critical: "critical (status, doctor)"
        }
    }
}
