package import CommandKit
import FoundationEssentials
package import Glibc
package import Postgres

/// Real worker processes under load: this program's `worker --practice`, started, watched and stopped.
package struct LoadWorkers: Sendable {
    /// What a process has used.
    package struct Usage: Sendable {
        /// Processor time, in seconds.
        package var processor = 0.0
        /// Resident memory now, and at the most, in megabytes.
        package var resident = 0.0
        package var mostResident = 0.0
    }

    private let processes: [StartedProcess]
    private let directory: String

    package var pids: [pid_t] { processes.map(\.pid) }

    /// Where practice.mark writes when each run began; see `Marks`.
    package var marksPath: String { directory + "/marks" }

    /// Starts `count` workers and waits until each is running. A scenario that fails leaves none behind.
    /// - Parameters:
    ///   - arguments: further arguments, such as `--slots 1000`.
    ///   - environment: added to this process's own.
    package static func start(
        _ count: Int, _ invocation: Invocation, arguments: [String] = [], environment: [String: String] = [:],
        on connection: Connection
    ) async throws -> LoadWorkers {
        let directory = try Scratch.directory("load", in: Scratch.temporary, isOpen: false)
        let label = "load-\(getpid())-\(UInt32.random(in: .min ... .max))"
        var variables = invocation.environment
        let location = try invocation.connectionOptions().location
        if !location.isEmpty { variables["DATABASE_URL"] = location }
        variables["MILLRACE_DIRECT_URL"] = invocation.settings.directURL
        variables["MILLRACE_LISTEN"] = "off"
        variables.merge(environment) { $1 }
        let words = ["worker", "--practice", "--marks", directory + "/marks", "--parent", "\(getpid())"]
        let processes = try (0..<count).map { number in
            try StartedProcess(
                "a worker", words + ["--name", "\(label)-\(number)", "--log-level", "warning"] + arguments,
                environment: variables, log: directory + "/log")
        }
        let workers = LoadWorkers(processes: processes, directory: directory)
        let areAtWork = try await Patience.waited(.seconds(60), every: .milliseconds(5)) {
            guard processes.allSatisfy(\.isAlive) else { throw Failure("a worker ended: \(workers.said)") }
            return try await connection.int(
                "select count(*) from millrace.session where starts_with(name, $1)", [.text(label)]) >= count
        }
        guard areAtWork else { throw Failure("the workers did not come to work: \(workers.said)") }
        return workers
    }

    private var said: String { String((processes.first?.said ?? "").suffix(2000)) }

    /// The usage of all workers together; memory is that of the largest.
    package func usage() -> Usage {
        var whole = Usage()
        for pid in pids {
            if let ticks = ProcessTable.ticks(of: pid) { whole.processor += ticks.own / ProcessTable.ticksPerSecond }
            let resident = ProcessTable.resident(of: pid)
            whole.resident = max(whole.resident, Double(resident.now) / 1_048_576)
            whole.mostResident = max(whole.mostResident, Double(resident.most) / 1_048_576)
        }
        return whole
    }

    /// Drains the workers and waits for their end. Throws if one did not end well.
    package func stop() async throws {
        for process in processes { process.signal(SIGTERM) }
        var codes: [Int32] = []
        for process in processes { codes.append(await process.end(nil)) }
        guard codes.allSatisfy({ $0 == 0 }) else { throw Failure("a worker ended badly (\(codes)): \(said)") }
    }

    /// As crashes.
    package func kill() { for process in processes { process.kill() } }
}
