import Postgres

extension Alarm {
    /// A command that looks at all that it may be about: an alarm never leaves its reader without one.
    package var look: String {
        switch self {
        case .condition: "millrace status"
        case .unknownState, .notWritable, .workerClock, .strayHistory, .testClock, .gatewaySilent: "millrace doctor"
        case .noWorker: "systemctl start millrace"
        case .noPartitions, .failingHook: "millrace migrate"
        case .fewConnections: PostgresError.lookAtConnections
        case .lateQueue, .pausedQueue: "millrace queues list"
        case .deadJobs: "millrace failures list --sort dead"
        case .unknownKind, .silentWorker, .stuckHandlers, .cancelIgnored, .unservedRoom: "millrace workers list"
        case .strandedBuild: "millrace versions list"
        case .endsWorkers, .failingRuns: "millrace failures list"
        case .brokenSchedule, .overdueSchedule, .missedTimes: "millrace schedules list"
        case .providerOpen, .providerForced, .mailSwitched: "millrace providers list"
        case .mailParked: "millrace mail list --status parked"
        case .lateMidnight: "millrace quests rollover"
        case .brokenFamily: "millrace quests verify"
        case .lateAlarm, .noWatchman: "millrace why --queue check-ins"
        case .unreachableAlarm, .brokenWatch: "millrace checkins alarms"
        case .alarmsWait, .noticesWait: "millrace why --queue notices"
        case .alarmsLost: "millrace notices list --alarms --status failed"
        case .webhookOff, .lateWebhooks: "millrace webhooks list"
        case .openTransaction:
            "psql -c 'select pid, usename, application_name, state, xact_start from pg_stat_activity order by xact_start'"
        case .failingBuild: "millrace versions compare"
        case .retries: "millrace jobs list --state scheduled"
        case .mailFiles: "millrace config"
        }
    }
}
