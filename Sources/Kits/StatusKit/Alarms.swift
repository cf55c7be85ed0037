import Postgres

// What may be wrong with the queue, the workers and the database; each room brings its own.
extension Alarm {
    package static let condition = Alarm("a condition of --fail-if holds", look: "millrace status")
    package static let unknownState = Alarm("the queues or the workers cannot be read", look: "millrace doctor")
    package static let noWorker = Alarm("no worker is running", look: "systemctl start millrace")
    package static let noPartitions = Alarm("no partition lies ahead", look: "millrace migrate")
    package static let fewConnections = Alarm(
        "the database has hardly any connections left", look: PostgresError.lookAtConnections)
    package static let lateQueue = Alarm("the oldest job waits too long", look: "millrace queues list")
    package static let deadJobs = Alarm("jobs died in the last hour", look: "millrace failures list --sort dead")
    package static let unknownKind = Alarm("no worker knows a kind", look: "millrace workers list")
    package static let strandedBuild = Alarm("no worker has a build", look: "millrace versions list")
    package static let stuckHandlers = Alarm("stuck handlers", look: "millrace workers list")
    package static let endsWorkers = Alarm("a job ends workers", look: "millrace failures list")
    package static let cancelIgnored = Alarm("a cancelled job still runs", look: "millrace workers list")
    package static let silentWorker = Alarm("a worker is silent", look: "millrace workers list")
    package static let notWritable = Alarm("the database takes no writes", look: "millrace doctor")
    package static let workerClock = Alarm("a worker's clock is wrong", look: "millrace doctor")
    package static let brokenSchedule = Alarm("a schedule cannot fire", look: "millrace schedules list")
    package static let overdueSchedule = Alarm("a schedule is overdue", look: "millrace schedules list")
    package static let missedTimes = Alarm("a schedule missed times", look: "millrace schedules list")
    package static let providerOpen = Alarm("a provider is not called", look: "millrace providers list")
    package static let providerForced = Alarm("an operator has forced a provider", look: "millrace providers list")
    package static let openTransaction = Alarm(
        "a transaction has been open for a long time",
        look:
            "psql -c 'select pid, usename, application_name, state, xact_start from pg_stat_activity order by xact_start'"
    )
    package static let oldVersions = Alarm(
        "old row versions are kept",
        look:
            "psql -c 'select gid, owner, prepared from pg_prepared_xacts' -c 'select slot_name, active, xmin, catalog_xmin from pg_replication_slots' -c 'select application_name, backend_xmin from pg_stat_replication'"
    )
    package static let heldUp = Alarm(
        "a client holds up the queue",
        look: "psql -c 'select pid, pg_blocking_pids(pid), application_name, state, xact_start from pg_stat_activity'")
    package static let subtransactions = Alarm(
        "a transaction has many subtransactions",
        look:
            "psql -c 'select pid, application_name, xact_start from pg_stat_activity where backend_xid is not null order by 3'"
    )
    package static let lockTable = Alarm(
        "the table of locks fills up", look: "psql -c 'select pid, count(*) from pg_locks group by 1 order by 2 desc'")
    package static let notifyLock = Alarm(
        "commits wait for each other to notify",
        look: "psql -c \"select application_name, query from pg_stat_activity where wait_event_type = 'Lock'\"")
    package static let catalogue = Alarm(
        "the catalogue is full of dead rows",
        look: "psql -c 'select relname, n_dead_tup, last_autovacuum from pg_stat_sys_tables order by 2 desc limit 5'")
    package static let identifiers = Alarm(
        "numbers of transactions run out",
        look:
            "psql -c 'select datname, age(datfrozenxid), mxid_age(datminmxid) from pg_database' -c 'select * from pg_stat_progress_vacuum'"
    )
    package static let strayHistory = Alarm("history lies in a default partition", look: "millrace doctor")
    package static let testClock = Alarm("a test clock is installed", look: "millrace doctor")
    package static let failingRuns = Alarm("runs of a kind fail", look: "millrace failures list")
    package static let failingBuild = Alarm("the newest build fails", look: "millrace versions compare")
    package static let retries = Alarm("retries pile up", look: "millrace jobs list --state scheduled")
    package static let pausedQueue = Alarm("a paused queue has waiting jobs", look: "millrace queues list")
    package static let unservedRoom = Alarm("work waits that no worker does", look: "millrace workers list")
    package static let mailFiles = Alarm("mail is written to files", look: "millrace config")
    package static let failingHook = Alarm("a room's hook fails", look: "millrace migrate")

    private static let core: [Alarm] = [
        .condition, .unknownState, .noWorker, .noPartitions, .fewConnections, .lateQueue, .deadJobs, .unknownKind,
        .strandedBuild, .stuckHandlers, .endsWorkers, .cancelIgnored, .silentWorker, .notWritable, .workerClock,
        .brokenSchedule, .overdueSchedule, .missedTimes, .providerOpen, .providerForced, .openTransaction,
        .strayHistory, .testClock, .failingRuns, .failingBuild, .retries, .pausedQueue, .unservedRoom, .mailFiles,
        .failingHook, .oldVersions, .heldUp, .subtransactions, .lockTable, .notifyLock, .catalogue, .identifiers,
    ]

    /// The core's, and those of these rooms.
    package static func all(with rooms: [Room]) -> [Alarm] { core + rooms.flatMap { $0.status?.alarms ?? [] } }
}
