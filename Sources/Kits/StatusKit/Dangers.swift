package import MillraceQueues

// What is said of a danger, from which size on, and what helps: the same for `status`, the console and `doctor`.

extension DangerRow {
    /// Of transactions that ended since: from here on it is not a long query any more.
    static let many = 1_000_000
    static let some = 100_000
    /// A session that does nothing has no reason to stay that long.
    static let manyForIdle = 20_000
    /// Of the two billion numbers that there are.
    static let manyNumbers = 1_000_000_000

    private var isIdle: Bool { detail.hasPrefix("idle in transaction") }

    /// `doctor` warns of it.
    package var isWorthAWarning: Bool {
        switch sort {
        case .transaction: isAlarm
        case .prepared: true
        case .slot, .standby: amount >= Self.some
        case .subtransactions, .locks, .notify, .blocker, .rows, .catalogue, .freeze: true
        case .transactionIDs, .multixacts: amount >= Self.manyNumbers / 2
        case .connections: false
        }
    }

    /// `status` says it.
    package var isAlarm: Bool {
        switch sort {
        case .transaction: amount >= (isIdle ? Self.manyForIdle : Self.many)
        case .prepared: amount >= Self.manyForIdle || (age ?? 0) > 60
        case .slot, .standby: amount >= Self.many
        case .subtransactions, .locks, .notify, .blocker, .rows, .catalogue: true
        case .transactionIDs, .multixacts: amount >= Self.manyNumbers
        case .freeze, .connections: false
        }
    }

    package var alarm: Alarm {
        switch sort {
        case .transaction: .openTransaction
        case .prepared, .slot, .standby: .oldVersions
        case .subtransactions: .subtransactions
        case .locks: .lockTable
        case .notify: .notifyLock
        case .blocker, .rows: .heldUp
        case .catalogue: .catalogue
        case .freeze, .transactionIDs, .multixacts: .identifiers
        case .connections: .fewConnections
        }
    }

    /// Who is named as holding up others is not named again for the same locks.
    package static func once(_ rows: [DangerRow]) -> [DangerRow] {
        let blocker = rows.first { $0.sort == .blocker }?.pid
        return rows.filter { $0.sort != .rows || $0.pid != blocker }
    }

    private var span: String { Humane.duration(.seconds(age ?? 0)) }
    private var session: String { pid.map { "\(owner) (pid \($0))" } ?? owner }
    /// The state of a session, and the tables that it holds.
    private var state: String { String(detail.prefix { $0 != "|" }) }
    private var tables: String {
        detail.drop { $0 != "|" }.dropFirst().split(separator: ",").joined(separator: ", ")
    }

    package var sentence: String {
        let since = "of the last \(Humane.count(amount, "transaction"))"
        switch sort {
        case .transaction:
            return
                "a transaction of \(session) has been open for \(span), \(detail), and keeps old row versions \(since)"
        case .prepared:
            return
                "the prepared transaction \(detail) of \(owner) has waited for \(span), and keeps old row versions \(since)"
        case .slot: return "the replication slot \(detail) keeps old row versions \(since)"
        case .standby:
            return "the standby \(owner) (\(detail)) keeps old row versions \(since), for a query that runs there"
        case .subtransactions:
            return
                "a transaction of \(session) has \(Humane.count(amount)) subtransactions, more than the 64 that are looked up fast, and slows the others down; it has been open for \(span)"
        case .locks:
            return "the table of locks is more than half full, \(detail): \(session) has \(Humane.count(amount))"
        case .notify:
            return
                "commits wait for each other because they notify, and most of those that wait are of \(owner): \(Humane.count(amount))"
        case .blocker:
            let held = tables.isEmpty ? "" : ", and holds locks on \(tables)"
            return
                "\(Humane.count(amount, "session")) of this database wait\(amount == 1 ? "s" : "") for \(session), which has been in a transaction for \(span), \(state)\(held)"
        case .rows:
            return
                "\(session), in a transaction for \(span), \(state), has locked \(tables), or rows of it: workers pass them over, or wait"
        case .catalogue:
            return
                "\(owner), \(detail), has \(Humane.count(amount)) dead rows beside \(Humane.count(Int(age ?? 0))) living: every plan is slow. Something makes and drops many tables, or keeps old row versions"
        case .freeze:
            return
                "a vacuum against wraparound of \(owner) runs (pid \(pid ?? 0)) since \(span), \(detail), with \(Humane.count(amount)) pages left: what alters that table waits for it"
        case .transactionIDs: return "\(Humane.count(amount)) numbers of transactions are in use, of two billion"
        case .multixacts: return "\(Humane.count(amount)) numbers of MultiXacts are in use, of two billion"
        case .connections: return "\(owner) has \(Humane.count(amount, "connection"))"
        }
    }

    package var command: String {
        func quoted(_ text: String) -> String { "'\(text.replacing("'", with: "''"))'" }
        switch sort {
        case .transaction, .subtransactions, .blocker, .rows:
            return "psql -c 'select pg_terminate_backend(\(pid ?? 0))'"
        case .locks: return pid.map { "psql -c 'select pg_terminate_backend(\($0))'" } ?? alarm.look
        case .prepared: return "psql -c \"rollback prepared \(quoted(detail))\""
        case .slot: return "psql -c \"select pg_drop_replication_slot(\(quoted(detail)))\""
        case .catalogue: return "psql -c 'vacuum pg_catalog.\(owner)'"
        case .standby, .notify, .freeze, .transactionIDs, .multixacts, .connections: return alarm.look
        }
    }
}

extension StatusReport {
    /// One that `pins` names is said there.
    var dangerFindings: [Finding] {
        let isPinned = pins.value?.contains(where: \.isTooOld) == true
        return DangerRow.once(dangers.value ?? []).filter { $0.isAlarm && !($0.sort == .transaction && isPinned) }.map {
            danger in
            Finding(
                alarm: danger.alarm, severity: .degraded, sentence: danger.sentence, command: danger.command,
                age: danger.sort == .catalogue ? nil : danger.age)
        }
    }

    /// Where connections run out: who has the most.
    var mostConnections: String {
        (dangers.value ?? []).first { $0.sort == .connections }.map { "; \($0.sentence)" } ?? ""
    }
}
