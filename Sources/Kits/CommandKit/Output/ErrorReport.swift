import Synchronization

/// The errors, kept until the end under `--json`: standard error then ends with one line of JSON.
package final class ErrorReport: Sendable {
    private struct State {
        var problems: [String] = []
        var hints: [String] = []
    }

    private let state = Mutex(State())

    package func add(problem: String) { state.withLock { $0.problems.append(problem) } }

    package func add(hint: String) { state.withLock { $0.hints.append(hint) } }

    /// nil when there was no error.
    package func json(code: ExitCode) -> JSONValue? {
        let (problems, hints) = state.withLock { ($0.problems, $0.hints) }
        guard let message = problems.first else { return nil }
        return [
            "version": 1,
            "error": [
                "class": .string(code.errorClass), "message": .string(message),
                "hint": hints.isEmpty ? .null : .string(hints.joined(separator: "; ")),
                "exit_code": .int(Int(code.rawValue)), "problems": .array(problems.map(JSONValue.string)),
            ],
        ]
    }
}

extension ExitCode {
    /// The word for machines.
    package var errorClass: String {
        switch self {
        case .done: "none"
        case .failed: "failed"
        case .misused: "misused"
        case .notFound: "not_found"
        case .conflict: "conflict"
        case .unreachable: "unreachable"
        case .schemaMismatch: "schema_mismatch"
        case .timedOut: "timed_out"
        case .jobDied: "job_died"
        case .degraded: "degraded"
        case .critical: "critical"
        }
    }
}
