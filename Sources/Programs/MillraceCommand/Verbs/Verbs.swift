/// The list of everything the executable can do. A new verb of the core is a value in a file beside this one, and a line here;
/// rooms bring theirs.
package enum Verbs {
    package static let tree: CommandTree = tree(of: Rooms.all)

    /// Of a program with these rooms.
    package static func tree(of rooms: [Room]) -> CommandTree {
        CommandTree(commands: commands(of: rooms), nouns: nouns(of: rooms), settings: .of(rooms))
    }

    package static let commands: [Command] = commands(of: Rooms.all)

    private static func commands(of rooms: [Room]) -> [Command] {
        core(rooms).map { command in roomsOfCore[command.path[0]].map(command.ofRoom) ?? command }
            + rooms.flatMap { room in room.verbs.map { $0.ofRoom(room.name) } }
            + last(rooms)
    }

    /// Commands among those of the core that need a room.
    private static let roomsOfCore = ["blobs": "blobs", "events": "events"]

    private static func core(_ rooms: [Room]) -> [Command] {
        let schemas = rooms.schemas
        return [
            .migrate(schemas), .uninstall,
            .roomsList(schemas), .roomsAdd(schemas), .roomsRemove(schemas), .roomsCheck(schemas),
            .dev(schemas),
            .worker(of: rooms),
            .waker,
            .console(of: rooms),
            .gateway,
            .enqueue,
            .status(of: rooms),
            .doctor(of: rooms),
            .why,
            .signal,
            .approvalsList, .approvalsAnswer, .approvalsLink,
            .jobsList,
            .jobsShow,
            .jobsWatch,
            .jobsLogs,
            .jobsTail,
            .jobsErrors,
            .jobsRetry,
            .jobsCancel,
            .jobsDelete,
            .jobsPriority, .jobsReschedule,
            .jobsFork, .jobsEdit, .jobsStep,
            .operationsList, .operationsShow, .operationsStart, .operationsRun,
            .operationsPause, .operationsResume, .operationsStop, .operationsUndo,
            .auditList, .auditKeep,
            .failuresList, .failuresShow,
            .kindsList, .kindsFields, .kindsRedact, .kindsHidden,
            .queuesList,
            .queuesPause,
            .queuesResume,
            .queuesDrain, .queuesWait, .queuesRemove,
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
            .versionsList, .versionsCompare, .versionsPromote, .versionsDrain, .versionsRollback, .versionsRelease,
            .versionsChanges,
            .rehearse,
            .eventsList,
            .eventsShow,
            .eventsPublish,
            .eventsTail,
            .blobsPut,
            .blobsGet,
            .blobsList,
            .blobsSweep,
            .blobsVerify,
            .providersList,
            .providersShow,
            .providersHistory,
            .providersBlock, .providersAllow,
            .providersOpen,
            .providersClose, .providersObserve,
            .providersReset,
            .providersErrors,
            .flagsList,
            .flagsSet,
            .moveTenant, .movePerson, .moveUndo, .moveList,
        ]
    }

    private static func last(_ rooms: [Room]) -> [Command] {
        [
            .keysGenerate,
            .keysList,
            .keysRotate,
            .load,
            .config(Setting.of(rooms)),
            .help,
            .version,
            .completions,
        ]
    }

    package static let nouns: [String: String] = nouns(of: Rooms.all)

    private static func nouns(of rooms: [Room]) -> [String: String] {
        rooms.map(\.nouns).reduce(coreNouns) { $0.merging($1) { first, _ in first } }
    }

    private static let coreNouns: [String: String] = [
        "rooms": "See which rooms are installed, add some, and take them away",
        "jobs": "Look at jobs, and change what becomes of them",
        "approvals": "See what jobs ask of people, and answer",
        "operations": "Act on all jobs that a filter names, at a pace, and undo it",
        "audit": "See what operators did",
        "failures": "See what fails, grouped by cause",
        "kinds": "Look at kinds, and say by which arguments jobs are found and which are hidden",
        "queues": "Look at queues, pause and resume them, wait for them, and remove empty ones",
        "schedules": "Have jobs enqueued by the clock",
        "workers": "Look at the workers",
        "versions": "Look at the versions of the workers, and compare two",
        "blobs": "Store content by its hash, fetch it, and sweep away what nobody refers to",
        "events": "Publish events, look at them, and follow their feed",
        "providers": "See how the providers we call are doing, and stop or force calls to them",
        "flags": "Switch things on for a share of all keys",
        "move": "Move the waiting jobs of a tenant or a person from one database to another",
        "keys": "Make encryption keys, see which are needed, and replace them",
    ]
}
