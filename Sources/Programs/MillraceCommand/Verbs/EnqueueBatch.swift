import Encryption
import MillraceQueues
import Postgres
import Synchronization

/// A line of a batch that is no job; nothing of the batch stays.
private struct BadLine: Error {
    let line: Int
    let complaint: String
}

/// Turns a file into the rows of a COPY, checking each line; only one line is in memory at a time.
private final class BatchReader: Sendable {
    private struct State: ~Copyable {
        var lines: Lines
        var jobs = 0
    }

    private let state: Mutex<State>
    /// nil: the arguments go as they are.
    private let keys: Keyring?
    private let onProgress: @Sendable (Int) -> Void

    init(_ chunks: FileChunks, keys: Keyring?, onProgress: @escaping @Sendable (Int) -> Void) {
        state = Mutex(State(lines: Lines(chunks)))
        self.keys = keys
        self.onProgress = onProgress
    }

    func next() throws -> (line: Int, json: [UInt8])? {
        let found = try state.withLock { state -> (line: Int, json: [UInt8], jobs: Int)? in
            while let bytes = try state.lines.next() {
                if bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) { continue }
                let line = state.lines.number
                let job = try Self.check(bytes, line: line)
                state.jobs += 1
                return (line, try keys.map { try Self.sealed(job, line: line, keys: $0) } ?? bytes, state.jobs)
            }
            return nil
        }
        guard let found else { return nil }
        if found.jobs.isMultiple(of: 1000) { onProgress(found.jobs) }
        return (found.line, found.json)
    }

    /// Checks what the database could not report with a place in the line; the database checks the rest.
    private static func check(_ bytes: [UInt8], line: Int) throws(BadLine) -> [JSONValue.Member] {
        do throws(JSONProblem) {
            let value = try JSONValue.read(bytes)
            guard case .object(let members) = value else {
                throw JSONProblem(complaint: "a job is an object, not \(value.word)", line: 1, column: 1)
            }
            return members
        } catch {
            throw BadLine(line: line, complaint: "column \(error.column): \(error.complaint)")
        }
    }

    /// The job with its arguments encrypted; one without a kind is left for the database to refuse.
    private static func sealed(
        _ members: [JSONValue.Member], line: Int, keys: Keyring
    ) throws(BadLine) -> [UInt8] {
        let job = JSONValue.object(members)
        guard let kind = job["kind"]?.text else { return Array(job.compact.utf8) }
        do {
            let args = try keys.seal(Array((job["args"] ?? [:]).compact.utf8), kind: kind)
            let rest = members.filter { $0.key != "args" }
            return Array(JSONValue.object(rest + [.init(key: "args", value: JSONValue(raw: args))]).compact.utf8)
        } catch {
            throw BadLine(line: line, complaint: error.description)
        }
    }
}

extension Invocation {
    func enqueueBatch(from path: String) async throws -> ExitCode {
        let given = EnqueueFlags.ofOne.map(\.name).filter { name in
            guard case .flag? = parsed.origin(name) else { return false }
            return true
        }
        if parsed.string("kind") != nil || !given.isEmpty {
            throw Failure(
                .misused,
                "--batch is for many jobs: \(given.first.map { "--\($0)" } ?? "<kind>") belongs to a single job",
                hint: "each line of the file says it for its own job")
        }
        let name = path == "-" ? "standard input" : path
        let chunks: FileChunks
        do {
            chunks = try surroundings.chunks(path)
        } catch {
            throw Failure(.misused, "\(name) cannot be read: \(error.complaint)")
        }
        let keys = parsed.isOn("encrypt") ? try neededKeys() : nil
        let region = console.live()
        let shows = console.errors.isTerminal && console.verbosity > .quiet
        let reader = BatchReader(chunks, keys: keys) { jobs in
            if shows { region.update(["\(Humane.count(jobs)) jobs read"]) }
        }
        do {
            let count = try await withSchema { connection in
                // A file of millions takes as long as it takes; each piece on its way has this long.
                try await Queue.enqueueCopied(on: connection, deadline: timeout ?? .seconds(86_400)) {
                    let next = try reader.next()
                    if next == nil, shows { region.update(["all read; enqueueing"]) }
                    return next
                }
            }
            if shows { region.update([]) }
            console.show(["enqueued": .int(count)]) { console.print("\(Humane.count(count, "job")) enqueued") }
            return .done
        } catch let bad as BadLine {
            throw Failure(
                .misused, "\(name), line \(bad.line), \(bad.complaint)", hint: "nothing was enqueued: it is all or none"
            )
        } catch let problem as FileProblem {
            throw Failure(.misused, "\(name): \(problem.complaint)", hint: "nothing was enqueued")
        } catch let failure as DatabaseFailure where failure.exitCode == .misused || failure.exitCode == .conflict {
            throw Failure(
                failure.exitCode, "\(name), \(failure.sentence)",
                hint: [failure.hint, "nothing was enqueued: it is all or none"].compactMap(\.self).filter {
                    !$0.isEmpty
                }
                .joined(separator: "\n"))
        }
    }
}
