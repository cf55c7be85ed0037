import Encryption
import FoundationEssentials
import MillraceJobs
import MillraceQueues
import Postgres
import Traces

extension Command {
    static let enqueue = Command(
        ["enqueue"],
        summary: "Enqueue a job, or a file of jobs",
        discussion: """
            The arguments are JSON: a text, @file, or - for standard input; without them {}. The job's id is printed, and \
            nothing else on standard output. With --wait the job is followed to its end; how it ended and its result are \
            printed on standard error, and with --json they are part of the answer: exit 0 when it succeeded, 8 when it \
            died or was cancelled, 7 when --timeout passed first. --batch reads JSON lines, each an object with the names of the SQL function \
            millrace.enqueue (kind, args, queue, priority, run_at, unique_key, on_conflict, limit_key, tenant, max_attempts, \
            tags, metadata, options), and enqueues all of them or none.

            With MILLRACE_DATABASES the tenant decides which database gets the job, by its hash and MILLRACE_ROUTES; \
            --database says it for a job without a tenant, and for a batch.
            """,
        arguments: [
            Argument("kind", .optional, .kindName, help: "the kind of job; not with --batch"),
            Argument("args", .optional, help: "JSON, @file, or - for standard input"),
        ],
        flags: EnqueueFlags.all,
        examples: [
            Example("millrace enqueue practice.echo '{\"hi\":1}'", "run it as soon as a worker is free"),
            Example("millrace enqueue practice.sleep '{\"ms\":500}' --wait --timeout 1m", "and wait for its end"),
            Example("millrace enqueue report.monthly --at 2030-01-31T12:00:00Z --unique 2030-01", "later, and once"),
            Example(
                "millrace enqueue page.render --unique home --on-conflict replace --in 5s",
                "again within 5s: postponed, and the last one wins"),
            Example("millrace enqueue report.daily --unique daily --unique-for 5m", "at most once in 5m"),
            Example("millrace enqueue report.merge --after 41 --after 42", "when both have succeeded"),
            Example("millrace enqueue card.charge @card.json --encrypt", "and nobody reads it in the database"),
            Example("millrace enqueue --batch jobs.jsonl", "every line a job, all or none"),
        ]
    ) { invocation in
        if let path = invocation.parsed.string("batch") { return try await invocation.enqueueBatch(from: path) }
        guard invocation.parsed.string("kind") != nil else {
            throw Failure(.misused, "<kind> is missing: the kind of job", hint: "or pass --batch FILE; see --help")
        }
        let job = try invocation.newJob()
        return try await invocation.routed(by: job.tenant).enqueueOne(job)
    }
}

enum EnqueueFlags {
    /// The flags of a single job; the lines of a batch contain these values themselves.
    static let ofOne: [CommandFlag] = [
        .single("queue", "NAME", .queueName, help: "Its queue; the kind's own if not given."),
        .single("priority", "N", .integer(0...9), help: "0 is first, 9 last; 4 if not given."),
        .single("at", "TIME", .instant, help: "Not before this time, in ISO 8601 with its zone."),
        .single("in", "DURATION", .duration(.zero ... .days(36_500)), help: "Not before this much time has passed."),
        .single("unique", "KEY", help: "At most one unfinished job of this kind holds the key."),
        .single(
            "on-conflict", "WHAT", .choice(OnConflict.allCases.map(\.rawValue)),
            help:
                "When the key is held: skip prints the holder, replace gives the holder the new contents, error is exit code 4."
        ),
        .single(
            "unique-for", "DURATION", .duration(.seconds(1) ... .days(365)),
            help: "How long the key stays held after the job's end."),
        .single(
            "unique-scope", "WHAT", .choice(UniqueScope.allCases.map(\.rawValue)),
            help: "The scope in which the key is unique; kind if not given."),
        .repeated(
            "after", "ID", .jobID, environment: .none,
            help: "Wait until this job has succeeded; may be given many times."),
        .single(
            "starts", "WHEN", .choice(After.Start.allCases.map(\.rawValue)), environment: .none,
            help: "With --after: when all have succeeded (if not given), when all have ended, or when one is dead."),
        .single(
            "if-dead", "WHAT", .choice(After.Failing.allCases.map(\.rawValue)), environment: .none,
            help: "With --after, when one is dead or cancelled: cancel (if not given), or wait for its redrive."),
        .single("limit-key", "KEY", help: "The key of a concurrency or rate limit."),
        .single("tenant", "NAME", help: "The tenant it belongs to."),
        .repeated("tag", "TAG", help: "A label to find it by; may be given many times."),
        .single(
            "max-attempts", "N", .integer(1...1000), help: "How many runs may fail; the kind's policy if not given."),
        .single("metadata", "JSON", help: "A JSON object that is stored with the job."),
        .single(
            "traceparent", "TEXT", environment: .named("TRACEPARENT"),
            help: "The place in a trace that it belongs to, as W3C Trace Context writes it."),
        .repeated(
            "option", "NAME=VALUE",
            help: "A further option: timeout, expires_at, unique_scope, unique_for, backoff, tell_end or wake."),
        .toggle("wait", environment: .none, help: "Wait until it has ended."),
    ]

    static let all =
        ofOne + [
            .single("batch", "FILE", .path, environment: .none, help: "Enqueue every line of a file, or of - ."),
            .toggle("encrypt", environment: .none, help: "Encrypt the arguments, with the first encryption key."),
            Setting.encryptionKeys.flag,
        ]
}

extension Invocation {
    static let largestArgs = 1_048_576

    func newJob() throws -> NewJob {
        var job = NewJob(kind: parsed.string("kind") ?? "", args: try arguments())
        if parsed.isOn("encrypt") { job.args = try seal(job.args, kind: job.kind, keys: neededKeys()) }
        job.queue = parsed.string("queue")
        job.priority = parsed.integer("priority")
        job.uniqueKey = parsed.string("unique")
        job.onConflict = parsed.string("on-conflict").flatMap(OnConflict.init) ?? .skip
        job.uniqueFor = parsed.duration("unique-for")
        job.uniqueScope = parsed.string("unique-scope").flatMap(UniqueScope.init)
        guard job.uniqueFor == nil || job.uniqueKey != nil else {
            throw Failure(
                .misused, "--unique-for is given without --unique", hint: "it says how long the key stays held")
        }
        let preds = parsed.integers("after").map { Int64($0) }
        let starts = parsed.string("starts").flatMap(After.Start.init)
        let failing = parsed.string("if-dead").flatMap(After.Failing.init)
        if !preds.isEmpty {
            job.after = After(preds, starts: starts ?? .whenAllSucceeded, onFailure: failing ?? .cancel)
        } else if starts != nil || failing != nil {
            throw Failure(.misused, "--starts and --if-dead need --after", hint: "say which jobs it waits for")
        }
        job.limitKey = parsed.string("limit-key")
        job.tenant = parsed.string("tenant")
        job.tags = parsed.list("tag")
        job.maxAttempts = parsed.integer("max-attempts")
        job.runAt = try parsed.string("at").map { text in try InstantText.read(text) }
        job.delay = parsed.duration("in")
        guard job.runAt == nil || job.delay == nil else {
            throw Failure(.misused, "--at and --in exclude each other: choose one")
        }
        if let text = parsed.string("metadata") {
            let value = try json(Array(text.utf8), of: "--metadata")
            guard case .object = value else {
                throw Failure(.misused, "--metadata takes a JSON object such as {\"trace\": \"…\"}, not \(value.word)")
            }
            job.metadata = Array(text.utf8)
        }
        if let text = parsed.string("traceparent") {
            // A shell may have inherited it, so one that is malformed is no reason to refuse the job.
            let caller = TraceContext(traceparent: text, tracestate: surroundings.environment["TRACESTATE"])
            if let caller { job.metadata = caller.carried(in: job.metadata) }
        }
        job.options = try options()
        return job
    }

    func seal(_ args: [UInt8], kind: String, keys: Keyring) throws(Failure) -> [UInt8] {
        do {
            return try keys.seal(args, kind: kind)
        } catch {
            throw Failure(.misused, error.description)
        }
    }

    /// JSON text, checked. The text itself is sent, because its numbers may have more digits than we can hold.
    func arguments() throws -> [UInt8] {
        guard let word = parsed.string("args") else { return Array("{}".utf8) }
        let tooLarge = Failure(
            .misused, "the arguments take more than the \(Self.largestArgs) bytes (1 MiB) allowed",
            hint: "store large data elsewhere and pass a reference")
        var bytes = Array(word.utf8)
        if word == "-" || word.hasPrefix("@") {
            let path = word == "-" ? word : String(word.dropFirst())
            guard !path.isEmpty else { throw Failure(.misused, "the name of a file is missing after the @") }
            let name = word == "-" ? "standard input" : path
            do {
                let chunks = try surroundings.chunks(path)
                bytes = []
                while case let piece = try chunks.next(), !piece.isEmpty {
                    bytes += piece
                    guard bytes.count <= Self.largestArgs else { throw tooLarge }
                }
            } catch let problem as FileProblem {
                throw Failure(.misused, "the arguments in \(name) cannot be read: \(problem.complaint)")
            }
        }
        guard bytes.count <= Self.largestArgs else { throw tooLarge }
        _ = try json(bytes, of: "the arguments", inShell: word == String(decoding: bytes, as: UTF8.self))
        return bytes
    }

    private func json(_ bytes: [UInt8], of what: String, inShell: Bool = true) throws(Failure) -> JSONValue {
        do throws(JSONProblem) {
            return try JSONValue.read(bytes)
        } catch {
            throw Failure(
                .misused, "\(what): malformed JSON, \(error.sentence)",
                hint: inShell ? "in a shell, put JSON in single quotes: '{\"name\": \"value\"}'" : nil)
        }
    }

    private func options() throws(Failure) -> [UInt8]? {
        let given = parsed.list("option")
        guard !given.isEmpty else { return nil }
        var members: [JSONValue.Member] = []
        for text in given {
            guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
                throw Failure(.misused, "--option takes NAME=VALUE such as timeout=30, not \(Secrets.quoted(text))")
            }
            let value = String(text[text.index(after: equals)...])
            members.append(.init(key: String(text[..<equals]), value: (try? JSONValue.read(value)) ?? .string(value)))
        }
        return Array(JSONValue.object(members).compact.utf8)
    }

    func enqueueOne(_ job: NewJob) async throws -> ExitCode {
        let deadline = deadline
        let options = try connectionOptions()
        return try await withSchema { connection in
            let (id, created) = try await Queue.enqueueTelling(job, on: connection)
            var answer: [JSONValue.Member] = [
                .init(key: "id", value: .int(Int(id))), .init(key: "created", value: .bool(created)),
            ]
            if console.format == .human { console.print("\(id)") }
            if !created {
                console.note(
                    job.onConflict == .replace
                        ? "job \(id) already waited with the unique key; it has taken the new work"
                        : "job \(id) already holds the unique key; nothing was enqueued")
            }
            guard parsed.isOn("wait") else {
                console.show(.object(answer)) {}
                return .done
            }
            let ending = try await Follower(id: id, options: options, console: console, deadline: deadline)
                .follow(on: connection)
            switch ending {
            case .ended(let job), .timedOut(let job?):
                answer.append(.init(key: "job", value: job.json))
                // Standard output is the id alone, so that a script can keep it in a variable.
                console.show(.object(answer)) {
                    if job.state.isFinal { console.note(job.ending, job.style) }
                    if let result = job.result { console.note(JSONValue(raw: result).compact) }
                }
                if !job.state.isFinal { throw Self.gaveUp(job.id, job) }
                return ExitCode(awaiting: job.state)
            case .timedOut(nil):
                console.show(.object(answer)) {}
                throw Self.gaveUp(id, nil)
            case .gone: throw Self.unknown(id)
            }
        }
    }

    static func unknown(_ id: Int64) -> Failure {
        Failure(.notFound, "there is no job \(id)", hint: "millrace jobs list shows them all")
    }

    static func gaveUp(_ id: Int64, _ job: JobDetail?) -> Failure {
        Failure(
            .timedOut, "job \(id) has not ended in time" + (job.map { "; it is \($0.state.rawValue)" } ?? ""),
            hint: job?.state == .ready
                ? "is there a worker for its kind? see millrace status" : "it goes on: millrace jobs watch \(id)")
    }
}
