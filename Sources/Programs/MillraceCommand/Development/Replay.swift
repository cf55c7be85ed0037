import Encryption
import FoundationEssentials
import Glibc
import MillraceJobs
import MillraceQueues
import Postgres
import Workers

/// A job of another database, as a viewer sees it there, and its copy here.
struct Replay: Sendable {
    let job: JobDetail
    let args: [UInt8]
    let steps: [StepRow]
    /// Where something is hidden in what it has.
    let hidden: [String]

    /// Reads it, and writes nothing: secrets stay where they are.
    /// - Parameter args: others than its own.
    static func take(_ id: Int64, args given: [UInt8]?, _ invocation: Invocation) async throws -> Replay {
        let (job, steps) = try await invocation.withSchema { connection in
            let found = try await connection.transaction { connection throws(PostgresError) in
                try await connection.execute("set transaction read only")
                let job = try await Queue.job(id, redacted: true, on: connection)
                return (job, job == nil ? [] : try await Queue.steps(of: id, redacted: true, on: connection))
            }
            guard let job = found.0 else { throw Invocation.unknown(id) }
            return (job, found.1)
        }
        guard let args = given ?? job.args else {
            throw Failure("job \(id): its arguments are no longer kept", hint: "give others with --args")
        }
        if given == nil, (try? SealedEnvelope(args)) ?? nil != nil {
            throw Failure(
                "job \(id): its arguments are encrypted, and stay so", hint: "give others with --args")
        }
        var hidden = HiddenPaths.find(in: args, at: "args")
        if let metadata = job.metadata { hidden += HiddenPaths.find(in: metadata, at: "metadata") }
        for step in steps { hidden += HiddenPaths.find(in: step.value, at: "step \(step.name)") }
        return Replay(job: job, args: args, steps: steps, hidden: hidden)
    }

    /// What was taken, for the terminal.
    var lines: [String] {
        let done = steps.isEmpty ? "no step" : Humane.count(steps.count, "step")
        var lines = [
            "job \(job.id), \(DisplayWidth.harmless(job.kind)), \(job.state.rawValue) there: taken with \(done) on record"
        ]
        if !hidden.isEmpty {
            let shown = hidden.prefix(10).map { DisplayWidth.harmless($0) }.joined(separator: ", ")
            lines.append("hidden by the rules there: \(shown)\(hidden.count > 10 ? ", …" : "")")
        }
        if let last = job.failures.last { lines.append("its last error there: \(DisplayWidth.harmless(last.error))") }
        return lines
    }

    /// Whether a build goes on with what is on record.
    enum Rehearsed: Sendable {
        case done([RehearsalFinding])
        case noHandler
        /// The program does not embed a worker of ours, as one in another language, or needs a database to come to it.
        case impossible(why: String)
    }

    /// Whether this build goes on with what is on record.
    func rehearsed(by plan: Workbench.Plan, keys: Keyring) async throws -> Rehearsed {
        var environment: [String: String] = [:]
        // It is run without a database, and cannot call anybody.
        for name in plan.environment.keys where !Self.withheld(name) { environment[name] = plan.environment[name] }
        let build = RehearsedBuild(
            RehearsedBuild.Start(program: plan.program, arguments: plan.arguments, environment: environment))
        let hello: RehearsalHello
        do throws(Failure) {
            hello = try await build.open()
        } catch {
            await build.close()
            return .impossible(why: error.sentence)
        }
        do throws(Failure) {
            var found = Rehearsed.noHandler
            if hello.kinds.contains(job.kind) {
                let row = try Self.rehearsed(RehearsalRow(job, args: args, steps: steps), keys)
                found = .done(try await build.rehearse(row) ?? [])
            }
            await build.close()
            return found
        } catch {
            await build.close()
            throw error
        }
    }

    private static func withheld(_ name: String) -> Bool {
        name.hasPrefix("DATABASE_") || name.hasPrefix("PG") || name.hasSuffix("_URL") || name.hasSuffix("_URL_FILE")
    }

    private static func rehearsed(_ row: RehearsalRow, _ keys: Keyring) throws(Failure) -> RehearsalCase {
        do {
            return try RehearsalCase(row, keys: keys)
        } catch {
            throw Failure("job \(row.id) cannot be read: \(error)")
        }
    }

    /// Its copy here, which has what is on record, and one attempt: a second would hide what the first showed.
    func enqueue(on connection: Connection) async throws(PostgresError) -> Int64 {
        try await connection.transaction { connection throws(PostgresError) in
            var copy = NewJob(kind: job.kind, args: args)
            copy.queue = job.queue
            copy.priority = job.priority
            copy.tenant = job.tenant
            copy.tags = job.tags
            copy.metadata = job.metadata
            copy.maxAttempts = 1
            let id = try await Queue.enqueue(copy, on: connection)
            for step in steps {
                _ = try await Queue.setStep(step.name, of: id, to: step.value, adds: true, on: connection)
            }
            return id
        }
    }
}

/// Where a JSON text says "[redacted]".
enum HiddenPaths {
    private static let word = "[redacted]"

    static func find(in json: [UInt8], at root: String) -> [String] {
        guard let value = try? JSONValue.read(json) else { return [] }
        var found: [String] = []
        walk(value, root, &found)
        return found
    }

    private static func walk(_ value: JSONValue, _ path: String, _ found: inout [String]) {
        switch value {
        case .string(word): found.append(path)
        case .array(let items):
            for (place, item) in items.enumerated() { walk(item, "\(path)[\(place)]", &found) }
        case .object(let members):
            for member in members { walk(member.value, "\(path).\(member.key)", &found) }
        case .null, .bool, .int, .double, .number, .string, .raw: break
        }
    }
}
