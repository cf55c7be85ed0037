/// The list of everything the executable can do. A new verb is a value in a file beside this one, and a line here.
enum Verbs {
    static let tree = CommandTree(commands: commands, nouns: nouns)

    private static let commands: [Command] = [
        .migrate,
        .dev,
        .worker,
        .enqueue,
        .status,
        .doctor,
        .jobsList,
        .jobsShow,
        .jobsWatch,
        .jobsLogs,
        .jobsRetry,
        .jobsCancel,
        .jobsDelete,
        .queuesList,
        .queuesPause,
        .queuesResume,
        .queuesDrain,
        .queuesRetention,
        .queuesLimit,
        .schedulesList,
        .schedulesShow,
        .schedulesAdd,
        .schedulesRemove,
        .schedulesPause,
        .schedulesResume,
        .schedulesRun,
        .schedulesNext,
        .workersList,
        .loadLatency,
        .loadDrain,
        .loadClaims,
        .loadLimits,
        .loadRate,
        .loadTenants,
        .config,
        .help,
        .version,
        .completions,
    ]

    private static let nouns: [String: String] = [
        "jobs": "Look at jobs, and change what becomes of them",
        "queues": "Look at queues, pause, resume and drain them",
        "schedules": "Have jobs enqueued by the clock",
        "workers": "Look at the workers",
        "load": "Measure, and compare with what was promised",
    ]
}
