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
        .jobsRetry,
        .jobsCancel,
        .jobsDelete,
        .queuesList,
        .queuesPause,
        .queuesResume,
        .queuesDrain,
        .queuesRetention,
        .queuesLimit,
        .workersList,
        .keysGenerate,
        .keysList,
        .keysRotate,
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
        "workers": "Look at the workers",
        "keys": "Make encryption keys, see which are needed, and replace them",
        "load": "Measure, and compare with what was promised",
    ]
}
