/// Why something does not move: what the scenario makes, and `why` must find.
enum StallCause: String, CaseIterable, Sendable {
    case queuePaused = "queue paused"
    case noWorker = "no worker at all"
    case workerTooOld = "worker too old"
    case kindUnserved = "none knows the kind"
    case queueUnserved = "none serves the queue"
    case workerDraining = "worker drains"
    case workerCutOff = "worker cut off from the database"
    case workerFrozen = "worker frozen"
    case queueLimit = "queue limit"
    case tenantLimit = "tenant limit"
    case keyLimit = "key limit"
    case rateLimit = "rate limit"
    case slotsBusy = "slots all busy"
    case tenantShare = "tenant share"
    case suspect = "suspect in isolation"
    case snapshotPinned = "claims under a pinned snapshot"
    case time = "its time"
    case retryPause = "pause before a retry"
    case providerOpen = "provider's breaker open"
    case providerForced = "provider stopped by an operator"
    case providerThrottled = "provider throttles"
    case providerQuota = "provider's quota used up"
    case keyMissing = "key for decryption missing"
    case flow = "job of its flow"
    case keyHeld = "holder of its unique key"
    case quarantined = "poison quarantined"
    case schedulePaused = "schedule paused"
    case scheduleProblem = "schedule with a problem"
    case documentPage = "document waits for its page"
    case mailParked = "mail parked"
    case alarmUnreachable = "alarm without a reachable contact"

    /// The words of `why` that name it.
    var reasons: Set<String> {
        switch self {
        case .queuePaused: ["queue_paused"]
        case .noWorker: ["no_worker"]
        case .workerTooOld: ["worker_too_old"]
        case .kindUnserved: ["kind_unserved"]
        case .queueUnserved: ["queue_unserved"]
        case .workerDraining: ["worker_draining"]
        case .workerCutOff: ["worker_cut_off"]
        case .workerFrozen: ["worker_frozen"]
        case .queueLimit: ["queue_limit"]
        case .tenantLimit: ["tenant_limit"]
        case .keyLimit: ["key_limit"]
        case .rateLimit: ["queue_rate", "tenant_rate", "key_rate"]
        case .slotsBusy: ["workers_full"]
        case .tenantShare: ["tenant_share"]
        case .suspect: ["suspect"]
        case .snapshotPinned: ["snapshot_pinned"]
        case .time: ["time"]
        case .retryPause: ["retry"]
        case .providerOpen: ["provider_open"]
        case .providerForced: ["provider_forced"]
        case .providerThrottled: ["provider_throttled"]
        case .providerQuota: ["provider_quota"]
        case .keyMissing: ["key_missing"]
        case .flow: ["waits_for"]
        case .keyHeld: ["key_held"]
        case .quarantined: ["quarantined"]
        case .schedulePaused: ["schedule_paused"]
        case .scheduleProblem: ["schedule_problem"]
        case .documentPage: ["document_page"]
        case .mailParked: ["mail_parked"]
        case .alarmUnreachable: ["alarm_unreachable"]
        }
    }

    /// Where the thing stands that does not move.
    enum Place: Sendable {
        /// Ready: several causes can hold one job up, and the one that must be gone first is the answer.
        case line
        /// Scheduled, blocked or ended: what holds up those in line does not matter to it.
        case aside
        /// A schedule, or the work of a room.
        case room
    }

    var place: Place { rank < 100 ? .line : rank < 200 ? .aside : .room }

    /// Which of several causes is the answer: the lowest. Removing only a later one moves nothing.
    var rank: Int {
        switch self {
        case .queuePaused: 10
        case .noWorker, .workerTooOld, .kindUnserved, .queueUnserved: 20
        case .workerDraining, .workerCutOff, .workerFrozen: 30
        case .queueLimit: 40
        case .tenantLimit: 41
        case .rateLimit: 42
        case .keyLimit: 43
        case .slotsBusy, .tenantShare: 50
        case .suspect: 60
        case .snapshotPinned: 70
        case .time, .retryPause, .providerOpen, .providerForced, .providerThrottled, .providerQuota, .keyMissing,
            .flow, .keyHeld, .quarantined:
            100
        case .schedulePaused, .scheduleProblem, .documentPage, .mailParked, .alarmUnreachable: 200
        }
    }

    /// What may hold up the same thing besides, without being the answer.
    var companions: [StallCause] {
        switch place {
        case .line:
            // A limit that is set after the first one would be asked first, where it stands before it.
            Self.allCases.filter {
                $0.place == .line && $0.rank > rank && $0.rank / 10 > rank / 10 && $0 != .tenantShare
            }
        case .aside: [.queuePaused, .noWorker, .workerDraining, .slotsBusy, .snapshotPinned]
        case .room: [.noWorker, .workerDraining, .slotsBusy]
        }
    }
}

/// A stall that was made, and how to ask about it.
struct Stall: Sendable {
    enum Question: Sendable {
        case job(Int64)
        case queue(String)
    }

    var cause: StallCause
    var companions: [StallCause]
    var question: Question
    /// What the answer must name: who holds it, what it waits for.
    var mentions: [String] = []
    /// The words of `why` that are right. Of a job at which workers ended that is said first, where no other worker would start it.
    var reasons: Set<String> {
        guard companions.contains(.suspect), case .job = question else { return cause.reasons }
        switch cause {
        case .noWorker, .kindUnserved, .queueUnserved, .workerFrozen: return ["ended_workers"]
        default: return cause.reasons
        }
    }

    /// Nothing remedies the wait for a time.
    var needsCommand: Bool { cause != .time }
}
