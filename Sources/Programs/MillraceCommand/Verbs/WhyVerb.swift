import MillraceJobs
import MillraceQueues
import Postgres

extension Command {
    static let why = Command(
        ["why"],
        summary: "Say why a job does not run, or a queue does not move",
        discussion: """
            Prints the cause in a sentence, the way from what is seen to what is to be done, and one command to run next. \
            --queue also takes a room that works without jobs (notices, webhooks, check-ins) and a schedule's name. \
            Exit 0 when there is an answer, also when nothing is wrong; 3 when there is no such job or queue. The reasons \
            are listed in the guide for operators.
            """,
        arguments: [Argument("id", .optional, .jobID, help: "the job's id; not with --queue")],
        flags: [
            .single("queue", "NAME", environment: .none, help: "A queue, a room's lane or a schedule instead of a job.")
        ],
        examples: [
            Example("millrace why 42", "what job 42 waits for, and what to do"),
            Example("millrace why --queue mail", "what the oldest job of a queue waits for"),
            Example("millrace why --queue check-ins --json", "for a script"),
        ]
    ) { invocation in
        switch (invocation.parsed.integer("id"), invocation.parsed.string("queue")) {
        case (nil, nil):
            throw Failure(.misused, "<id> is missing: the job's id", hint: "or pass --queue NAME")
        case (.some, .some):
            throw Failure(.misused, "a job's id and --queue exclude each other: choose one")
        case (let id?, nil): return try await invocation.why(job: Int64(id))
        case (nil, let name?): return try await invocation.why(queue: name)
        }
    }
}

extension Invocation {
    fileprivate func why(job id: Int64) async throws -> ExitCode {
        let (job, why) = try await withSchema { connection in
            guard let job = try await Queue.job(id, on: connection) else { throw Self.unknown(id) }
            return (job, try await Queue.why(id, on: connection).map { try JSONValue.read($0) })
        }
        let calm =
            job.state == .running
            ? "job \(id) is running, and no problem is known" : "job \(id) \(job.state.rawValue): nothing holds it"
        show(
            why, calm: calm,
            [("job", .int(Int(id))), ("queue", .string(job.queue)), ("state", .string(job.state.rawValue))])
        return .done
    }

    fileprivate func why(queue name: String) async throws -> ExitCode {
        let why = try await withSchema { connection in
            guard let bytes = try await Queue.why(queue: name, on: connection) else {
                throw try await Self.unknown(.queue, [name], on: connection)
                    ?? Failure(.notFound, "there is no queue \(name)")
            }
            return try JSONValue.read(bytes)
        }
        show(why, calm: "", [("job", .null), ("queue", .string(name)), ("state", .null)])
        return .done
    }

    private func show(_ why: JSONValue?, calm: String, _ members: [(String, JSONValue)]) {
        let json = JSONValue.object(
            (members + [("why", why ?? .null)]).map { JSONValue.Member(key: $0.0, value: $0.1) })
        console.show(json) {
            guard let why, let sentence = why["sentence"]?.text else { return console.print(calm) }
            console.print(DisplayWidth.harmless(sentence), .bold)
            guard console.verbosity > .quiet else { return }
            for (index, step) in (why["chain"]?.items ?? []).compactMap(\.text).enumerated() {
                console.print("  \(index + 1). " + DisplayWidth.harmless(step))
            }
            if let command = why["command"]?.text { console.print("run: " + DisplayWidth.harmless(command)) }
        }
    }
}
