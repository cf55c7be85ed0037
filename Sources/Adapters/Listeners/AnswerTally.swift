import Synchronization
import Telemetry
import Threads

/// Counts answers, and logs a line for each. The path is logged as its pattern, because the parts in braces may be secrets, and the query
/// is left out.
final class AnswerTally: Sendable {
    let changed = Wakeup()
    private let log: Log
    private let state = Mutex(Listener.Counts())

    init(_ log: Log) {
        self.log = log
    }

    var counts: Listener.Counts { state.withLock { $0 } }

    func add(_ exchange: Exchange, isWhole: Bool) {
        let note = exchange.note.withLock { $0 }
        state.withLock { counts in
            if isWhole { counts.answered[note.status / 100, default: 0] += 1 } else { counts.broken += 1 }
        }
        changed.fire()
        let level: Log.Level =
            switch note.status {
            case 500...: .warning
            case 400...: .info
            default: .debug
            }
        log.write(level, isWhole ? "answered" : "broke off") {
            [
                ("http.method", String(note.method.prefix(20))),
                ("http.path", note.pattern ?? Self.outline(exchange.target)),
                ("http.status", "\(note.status)"), ("http.peer", exchange.openConnections.peer(exchange.connectionKey)),
                ("ms", "\(Int(exchange.began.duration(to: .now) / .milliseconds(1)))"),
            ] + note.additions
        }
    }

    /// For an unknown path: it may be a mistyped one with a secret in it.
    private static func outline(_ target: String) -> String {
        let parts = target.prefix { $0 != "?" }.split(separator: "/", maxSplits: 2)
        return "/" + parts.prefix(1).map { String($0.prefix(20)) }.joined() + (parts.count > 1 ? "/…" : "")
    }
}
