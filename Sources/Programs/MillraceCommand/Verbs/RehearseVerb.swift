import Encryption
import MillraceQueues
import Postgres
import Workers

extension Command {
    static let rehearse = Command(
        ["rehearse"],
        summary: "Find the jobs under way that a new build could not go on with",
        discussion: """
            Starts the new build, a program that embeds a worker, as a child process: it does not touch the database, cannot \
            call anybody once its worker runs, and does the work of no step. It is given what is on record of every job that is \
            under way, and of a sample of others, and runs their handlers on it. A job is named when its handler asks for a step \
            that is not on record where another is, leaves one out, asks for them in another order or with other input, does not \
            wait where the job waits, or when its arguments or values no longer decode. Middleware is left out. Exit 0: none is \
            named; 1: some are.
            """,
        flags: [
            .single("with", "PATH", .path, environment: .none, help: "The new build's program."),
            .repeated("arg", "TEXT", environment: .none, help: "An argument for it; may be given many times."),
            .repeated(
                "env", "NAME", environment: .none,
                help: "A variable to pass on to it; may be given many times. It has PATH, HOME, LANG and TZ anyway."),
            .single("kind", "KIND", .kindName, environment: .none, help: "Only jobs of this kind."),
            .single(
                "sample", "N", .integer(0...500), environment: .none, fallback: "100",
                help: "How many jobs of each kind that have succeeded, are dead, or have not begun."),
            .single(
                "time-limit", "DURATION", .duration(.milliseconds(100) ... .seconds(600)), environment: .none,
                fallback: "10s", help: "How long one run may take."),
            Setting.encryptionKeys.flag,
        ],
        examples: [
            Example("millrace rehearse --with ./new-worker", "before it is deployed"),
            Example("millrace rehearse --with ./new-worker --kind order.place --json", "one kind, for a script"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        guard let program = parsed.string("with") else {
            throw Failure(.misused, "--with is missing: the program of the new build")
        }
        var environment: [String: String] = [:]
        for name in ["PATH", "HOME", "LANG", "TZ", "LD_LIBRARY_PATH"] + parsed.list("env") {
            environment[name] = invocation.environment[name]
        }
        let build = RehearsedBuild(
            RehearsedBuild.Start(
                program: program, arguments: parsed.list("arg"), environment: environment,
                limit: parsed.duration("time-limit") ?? .seconds(10)))
        let hello = try await build.open()
        if !hello.isOffline {
            invocation.console.warning("the kernel refuses to cut the new build off from the network")
        }
        let walk = RehearsalWalk(
            build: build, kinds: hello.kinds, only: parsed.string("kind"), sample: parsed.integer("sample") ?? 100,
            keys: invocation.settings.keys, console: invocation.console)
        let report = try await invocation.withSchema { connection in try await walk.run(on: connection) }
        await build.close()
        invocation.console.show(report.json) {
            for line in report.lines { invocation.console.print(line) }
        }
        return report.found == 0 ? .done : .failed
    }
}
