import RoomSchemas
import Schema

extension Command {
    static func dev(_ known: [RoomSchema]) -> Command {
        Command(
            ["dev"],
            summary: "Run everything on this machine: a Postgres, the schema, a worker",
            discussion: """
                Without DATABASE_URL a private Postgres runs from the system's own programs, with a directory of its own \
                and only a Unix socket; the next run finds everything as it was. The worker knows the practice kinds, and \
                is restarted when it crashes. Ctrl-C stops everything: the worker is drained, the private Postgres is \
                stopped.

                --with runs your own program with a worker beside it. --build is done first and whenever a source changes; \
                the program is then started again. Without --build it is started again when the program itself changes. A \
                build that fails leaves the worker as it is.

                --replay takes a job of the database that is given, usually production's, reads only what a viewer may \
                read of it, with its secrets hidden, and writes nothing there. A copy with the recorded steps runs here, on \
                the private Postgres, with one attempt, after the checks of millrace rehearse; so it does with each new \
                build. Steps that are not on record are really done.
                """,
            flags: [
                .toggle(
                    "tour", environment: .none, help: "Enqueue some jobs first, and follow them to their ends."),
                .toggle(
                    "once", environment: .none,
                    help: "End with exit 0 after the tour or the replay, or else once everything runs."),
            ] + WorkbenchFlags.all + [
                Setting.directory.flag, Setting.slots.flag, Setting.listen.flag, Setting.token.flag,
                Setting.logLevel.flag, Setting.encryptionKeys.flag,
            ],
            examples: [
                Example("millrace dev", "for developing against a queue"),
                Example("millrace dev --tour --once", "a look at how it works"),
                Example(
                    "millrace dev --with .build/debug/receipts --build 'swift build'",
                    "your worker, built when a source changes"),
                Example(
                    "millrace dev --with .build/debug/receipts --replay 42 --debugger",
                    "job 42 of DATABASE_URL, under a debugger"),
            ]
        ) { invocation in
            try await Development(invocation: invocation, schemas: known).run()
        }
    }
}

/// What is to run beside our worker.
private enum WorkbenchFlags {
    static let all: [CommandFlag] = [
        .single("with", "PATH", .path, environment: .none, help: "A program of yours with a worker, to run as well."),
        .repeated("arg", "TEXT", environment: .none, help: "An argument for it; may be given many times."),
        .single(
            "build", "COMMAND", environment: .none,
            help: "How to build it: a line for the shell, such as 'swift build'."),
        .repeated(
            "watch", "PATH", .path, environment: .none,
            help:
                "A file or folder to watch; may be given many times. If not given: Sources and Package.swift with --build, else the program."
        ),
        .single(
            "replay", "JOB", .jobID, environment: .none,
            help: "Take this job of the given database, and run a copy of it here; needs --with."),
        .single(
            "args", "JSON", environment: .none,
            help: "Other arguments for --replay: JSON, @file, or - for standard input."),
        .toggle("debugger", environment: .none, help: "With --replay: begin once a debugger is attached."),
    ]
}
