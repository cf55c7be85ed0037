import MillraceQueues
import Workers

/// One claim by one session; what every write about a claimed job has to show.
struct Token: Hashable {
    var session: Int
    var number: Int
}

struct RunKey: Hashable {
    var token: Token
    var job: Int
}

enum Outcome: Hashable {
    case succeeded, cancelled, dead, retried, released, crashed

    var isFinal: Bool {
        switch self {
        case .succeeded, .cancelled, .dead: true
        case .retried, .released, .crashed: false
        }
    }
}

/// The database's contents. Every change is one transaction.
struct Base: Hashable {
    struct Lease: Hashable {
        var token: Token
        var jobs: [Int]
    }

    /// Which places in line are taken, by job; 0 where the order does not matter.
    var ready: [Int: Int] = [:]
    var timer: Set<Int> = []
    /// Jobs whose enqueue has drawn its place and has not committed.
    var writing: [Int: Int] = [:]
    var leases: [Lease] = []
    /// The claims since anything else was committed: they are not on the disk.
    var loose: [Token] = []
    var history: [RunKey: Outcome] = [:]
    var sessions: Set<Int> = []
    var cancels: [RunKey] = []
    var attempts: [Int]
    var drawn = 0
    var lastSession = 0

    func lease(_ token: Token) -> Lease? { leases.first { $0.token == token } }

    func outcome(of run: RunKey) -> Outcome? { history[run] }

    func end(of job: Int) -> Outcome? { history.first { $0.key.job == job && $0.value.isFinal }?.value }

    /// The lease that answers for the job now, if any does.
    func holder(of job: Int) -> Token? {
        leases.first { $0.jobs.contains(job) && outcome(of: RunKey(token: $0.token, job: job)) == nil }?.token
    }

    func places(of job: Int) -> Int {
        let held = leases.count { $0.jobs.contains(job) && outcome(of: RunKey(token: $0.token, job: job)) == nil }
        let ends = history.count { $0.key.job == job && $0.value.isFinal }
        return held + ends + (ready[job] == nil ? 0 : 1) + (timer.contains(job) ? 1 : 0)
            + (writing[job] == nil ? 0 : 1)
    }
}

/// A worker process: what it believes, and which statements it has sent without an answer yet.
struct Process: Hashable {
    struct Entry: Hashable {
        var token: Token
        var total: Int
        var recorded = 0
    }

    struct Going: Hashable {
        var run: RunKey
        /// Its end is recorded already, but its work is not done: only in a deliberately broken build.
        var isOwed = false
    }

    struct End: Hashable {
        var run: RunKey
        var outcome: Outcome
    }

    struct Flush: Hashable {
        var ends: [End]
        /// Leases of which these are the last jobs, as the worker counts.
        var complete: Set<Token>
    }

    /// A request and its answer are one step where nothing that could come between them makes a difference.
    enum Claiming: Hashable {
        case idle
        case answered(Token, jobs: [Int], places: [Int], from: [ClaimRange])
    }

    enum Flushing: Hashable {
        case idle
        /// The answer was lost: first the worker asks what is recorded.
        case unsure(Flush)
        /// And then, if nothing was, tells it again.
        case again(Flush)
    }

    var isAlive = true
    /// The database hears nothing of it: frozen, or cut off.
    var isSilent = false
    var isDraining = false
    var mustReconcile = false
    var session = 0
    var number = 0
    var leases: [Entry] = []
    var going: [Going] = []
    var pending: [End] = []
    var claiming = Claiming.idle
    var flushing = Flushing.idle
    /// Halves of a flush that the database refused as a whole.
    var halves: [[End]] = []
    var floors = Floors()
    /// A look at the horizon whose answer is on its way.
    var horizon: Horizon?

    func holds(_ token: Token) -> Bool { leases.contains { $0.token == token } }

    var isIdle: Bool {
        going.isEmpty && pending.isEmpty && claiming == .idle && flushing == .idle && halves.isEmpty
    }

    mutating func lose(_ tokens: Set<Token>) {
        leases.removeAll { tokens.contains($0.token) }
        going.removeAll { tokens.contains($0.run.token) && !$0.isOwed }
        pending.removeAll { tokens.contains($0.run.token) }
    }
}

/// A statement whose connection is gone, but which the server may still run.
enum Stray: Hashable {
    case claim(Token, from: [ClaimRange])
    case finish(Process.Flush)
}

enum Cancelling: Hashable {
    case notYet
    /// It has seen who holds the job, and has not committed its cancel yet.
    case looked(RunKey)
    case done
}

struct World: Hashable {
    var base: Base
    var processes: [Process]
    var strays: [Stray] = []
    /// Jobs that nobody has enqueued yet.
    var undrawn: Set<Int>
    var cancelling: Cancelling
    var faults: Faults

    // What only the observer sees.
    /// Runs that did their work.
    var acted: Set<RunKey> = []
    /// Runs that began and were taken back with their lease before any end.
    var takenBack: Set<RunKey> = []
    /// The job whose cancellation somebody was promised.
    var promised: Int?
    /// The first promise that was broken on the way here.
    var broken: String?
}

/// How many of each fault may still happen.
struct Faults: Hashable {
    var kills = 0
    var silences = 0
    var cuts = 0
    var crashes = 0
    var earlyRescues = 0
    var drains = 0
    var retries = 0
}

/// A question small enough to be answered for every order of events.
struct Scope {
    var name: String
    var jobs: Int
    var workers: Int
    var faults = Faults()
    /// Jobs are enqueued meanwhile, and may commit in another order than that of their places.
    var late = false
    /// A claim is the end of its jobs: only the way there is explored.
    var claimsEnd = false
    var cancels = false
    var attempts = 2
    var batch = 2
}

/// A build with one thing broken.
enum Broken: CaseIterable {
    case nothing, noTokenCheck, finishBeforeEffect, noSweeper, rescueLeavesLease, rescueForgetsCancel, neverReconciles
}
