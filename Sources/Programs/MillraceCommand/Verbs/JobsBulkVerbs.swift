import MillraceQueues

extension Command {
    static let jobsRetry = bulk(
        .retry, summary: "Run jobs again: dead and cancelled ones from the start, scheduled ones now",
        discussion: """
            A dead or cancelled job starts again from its first attempt. It keeps its errors and its recorded steps; \
            with --fresh the steps are done again. A job is left alone, with exit code 4, if another job holds its \
            unique key or if its arguments are no longer kept. With filters it is an operation, as millrace \
            operations start retry begins it: such jobs are counted, and for ten minutes millrace operations undo \
            can undo it.
            """,
        extra: [
            .toggle("dead", environment: .none, help: "All dead jobs, or those that match the filters."),
            .single(
                "state", "STATE", .choice(["dead", "cancelled", "scheduled", "retrying"]), environment: .none,
                help:
                    "All jobs in this state, or those that the filters leave; retrying: scheduled after a run that failed."
            ),
            .toggle("fresh", environment: .none, help: "Forget their recorded steps, so that all are done again."),
            .toggle("flow", environment: .none, help: "All dead and cancelled jobs of these jobs' flows."),
            .single(
                "rate", "N", .integer(1...10_000), environment: .none,
                help: "At most this many a second, to spare what the jobs call; as fast as possible if not given."),
        ],
        examples: [
            Example("millrace jobs retry 42 43", "these two"),
            Example(
                "millrace jobs retry --dead --kind mail.send --dry-run", "how many are there, and what did they die of?"
            ),
            Example(
                "millrace jobs retry --dead --error 'timed out' --since 2h --rate 50", "gently, those that died of that"
            ),
        ])

    static let jobsCancel = bulk(
        .cancel, summary: "Cancel jobs that wait or run",
        discussion: "A running job is told within a second; its handler decides what to do.",
        extra: [
            .single(
                "state", "STATE", .choice(["ready", "scheduled", "blocked", "running"]), environment: .none,
                help: "All jobs in this state, or those that match the filters."),
            .toggle("flow", environment: .none, help: "All jobs of these jobs' flows."),
        ],
        examples: [
            Example("millrace jobs cancel 42", "one of them"),
            Example("millrace jobs cancel --queue mail --state scheduled --yes", "a whole queue's future, in a script"),
        ])

    static let jobsDelete = bulk(
        .delete, summary: "Delete jobs and everything known about them",
        discussion:
            "A running job is refused: cancel it first. With filters it means ended jobs, unless --state says otherwise.",
        extra: [
            .single(
                "state", "STATE", .choice(["ready", "scheduled", "blocked", "succeeded", "cancelled", "dead"]),
                environment: .none, help: "All jobs in this state, or those that match the filters.")
        ],
        examples: [
            Example("millrace jobs delete 42", "one of them"),
            Example("millrace jobs delete --state dead --kind old.kind --dry-run", "how many would it be?"),
        ])

    private static func bulk(
        _ deed: Deed, summary: String, discussion: String, extra: [CommandFlag], examples: [Example]
    ) -> Command {
        Command(
            ["jobs", deed.rawValue], summary: summary, discussion: discussion,
            arguments: [Argument("id", .any, .jobID, help: "the jobs' ids; none with filters")],
            flags: extra + JobFlags.bulkFilter + JobFlags.ofOwner + (deed == .cancel ? [] : JobFlags.ofDead)
                + JobFlags.ofCause + [
                    .toggle("dry-run", environment: .none, help: "Print the number, and change nothing.")
                ], examples: examples
        ) { invocation in
            try await Bulk(deed: deed, invocation: invocation).run()
        }
    }
}

extension JobFlags {
    /// Not from the environment: a forgotten variable must not decide what is deleted.
    static let bulkFilter: [CommandFlag] = [
        .single("queue", "NAME", .queueName, environment: .none, help: "Only jobs of this queue."),
        .single("kind", "KIND", .kindName, environment: .none, help: "Only jobs of this kind."),
        .single("tag", "TAG", environment: .none, help: "Only jobs with this tag."),
    ]
}
