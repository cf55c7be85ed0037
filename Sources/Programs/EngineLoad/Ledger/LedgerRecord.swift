import CommandKit

/// What the producers know about their own calls; they keep it themselves, because the database is to be checked.
struct LedgerIntent: Sendable {
    enum Shape: String, Sendable, CaseIterable {
        case plain, delayed, failing, snoozing, steps, unique, limited, flow, fan, cancelled, rolledBack = "rolled back"
        case late = "committed late"
        /// Deleted as soon as they exist, beside the claims for them.
        case deleted
        /// These wait in the middle: for a time, for a signal of a shared key, for one with a timeout, for an answer, for jobs of their own.
        case sleeping, signalled, timed, asking, parent = "with children"
        /// Three steps, which are undone if it does not succeed.
        case order
        /// A unique key's successor, cancelled, and a job that waits for its end.
        case successor

        /// Each number stays a job of its own.
        var keepsNumbers: Bool { self != .unique && self != .deleted && self != .successor }
    }

    enum Outcome: Sendable {
        case committed, rolledBack
        /// The answer to the commit was lost: either is right, as long as it is one of them.
        case unknown
    }

    var shape: Shape
    /// Whose arguments carry these numbers.
    var numbers: ClosedRange<Int>
    /// Empty when the answer was lost.
    var ids: [Int64]
    var outcome: Outcome
    /// When the call began and when it was answered, in seconds.
    var called: Double
    var answered: Double
    var key: String?
    /// Not before this, in seconds.
    var due: Double?
    /// The database said that a cancel took effect before the job ran.
    var wasCancelled = false
    /// Those it was to wait for.
    var after: [Int64] = []
    /// When the database had answered that a job was deleted.
    var deleted: [Int64: Double] = [:]
}

/// A row that a run wrote about itself.
struct LedgerEntry: Sendable {
    var job: Int64
    var token: LedgerToken
    var what: String
    var at: Double
    /// The database still had the run's lease when this was written.
    var isLeased = true
}

struct LedgerToken: Sendable, Hashable {
    var session: Int64
    var number: Int64

    /// As `context.token` spells it: session in hexadecimal, number, job.
    init?(_ text: String) {
        let parts = text.split(separator: "-")
        guard parts.count == 3, let session = UInt64(parts[0], radix: 16), let number = Int64(parts[1]) else {
            return nil
        }
        self.init(session: Int64(bitPattern: session), number: number)
    }

    init(session: Int64, number: Int64) {
        self.session = session
        self.number = number
    }
}

/// A run as history has it.
struct LedgerRun: Sendable {
    var job: Int64
    var token: LedgerToken
    var started: Double
    var finished: Double
    /// 1 succeeded, 2 cancelled, 3 dead, 4 retried, 5 snoozed, 6 released, 7 crashed, 8 waits.
    var outcome: Int
    var attempt: Int
}

/// A job as the database holds it at the end.
struct LedgerJob: Sendable {
    var id: Int64
    var kind: String
    var n: Int?
    var key: String?
    var limitKey: String?
    var state: String
    var wait: LedgerWait?
    var order: LedgerOrder?
    /// It undoes a step of another job with the same arguments.
    var isUndo = false
}

/// Something done to the system, and to whom.
struct LedgerFault: Sendable {
    var what: String
    var from: Double
    var until: Double
    /// How long after it a struck worker may still be taken for dead.
    var aftermath = 0.0
    /// The server crashed: claims that were not yet on its disk were undone.
    var undoesClaims = false
    /// The names of the workers that it struck; nil: all.
    var workers: Set<String>?
}

/// Which worker opened a session, and when.
struct LedgerSession: Sendable {
    var worker: String
    var started: Double
}
