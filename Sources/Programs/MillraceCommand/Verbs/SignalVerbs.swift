import FoundationEssentials
import JSON
import MillraceJobs
import MillraceQueues
import Postgres

extension Command {
    static let signal = Command(
        ["signal"],
        summary: "Tell jobs that wait for a signal",
        discussion: """
            A job that waits for this name and key goes on; with --all every one that does. If none waits yet, the signal is kept \
            for the first one that does. With --job it reaches that job alone, which waits for it with context.signal. With --id a second \
            call with the same content sends nothing, and one with different content is refused with exit 4.
            """,
        arguments: [
            Argument("name", .one, help: "what has happened, such as payment-received"),
            Argument("payload", .optional, help: "JSON, @file, or - for standard input; null if not given"),
        ],
        flags: [
            .single("key", "KEY", environment: .none, fallback: "", help: "Which one, such as an order's number."),
            .single(
                "job", "JOB", .jobID, environment: .none, help: "Only this job; without --key, --all and --keep."),
            .single(
                "id", "ID", environment: .none, help: "The sender's own id: repeated, the signal is sent only once."),
            .toggle("all", environment: .none, help: "For all jobs that wait for it, and not for one."),
            .single(
                "keep", "DURATION", .duration(.seconds(1) ... .days(366)), environment: .none, fallback: "720h",
                help: "How long it is kept."),
        ],
        examples: [
            Example("millrace signal payment-received '{\"amount\": 12}' --key order-7 --id evt-81", "told once"),
            Example("millrace signal approved true --job 42", "for one job alone"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let name = parsed.string("name") ?? ""
        let payload =
            try parsed.string("payload").map { try invocation.json(at: $0, named: "the payload", most: 65_536) }
            ?? Array("null".utf8)
        let job = parsed.integer("job").map { Int64($0) }
        if job != nil, parsed.isOn("all") || parsed.string("key") != "" {
            throw Failure(.misused, "--job excludes --key and --all: it names who is told")
        }
        let isNew = try await invocation.withSchema { connection in
            if let job {
                return try await Queue.signal(name, job: job, payload: payload, id: parsed.string("id"), on: connection)
            }
            return try await Queue.signal(
                name, key: parsed.string("key") ?? "", payload: payload, id: parsed.string("id"),
                toAll: parsed.isOn("all"), keep: parsed.duration("keep"), on: connection)
        }
        invocation.console.show(["name": .string(name), "sent": .bool(isNew)]) {
            invocation.console.print("\(DisplayWidth.harmless(name))  \(isNew ? "sent" : "was sent before")")
        }
        return .done
    }
}
