import CommandKit
import FoundationEssentials
import Glibc
import Postgres
import Threads

/// Real worker processes under load: this program's `worker --practice`, started, watched and stopped.
struct LoadWorkers: Sendable {
    /// What a process has used.
    struct Usage: Sendable {
        /// Processor time, in seconds.
        var processor = 0.0
        /// Resident memory now, and at the most, in megabytes.
        var resident = 0.0
        var mostResident = 0.0
    }

    let pids: [pid_t]
    private let directory: String

    /// Where practice.mark writes when each run began; see `Marks`.
    var marksPath: String { directory + "/marks" }

    /// Starts `count` workers and waits until each is running.
    /// - Parameters:
    ///   - arguments: further arguments, such as `--slots 1000`.
    ///   - environment: added to this process's own.
    static func start(
        _ count: Int, _ invocation: Invocation, arguments: [String] = [], environment: [String: String] = [:],
        on connection: Connection
    ) async throws -> LoadWorkers {
        let directory = try Scratch.directory(
            "load", in: getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp", isOpen: false)
        let label = "load-\(getpid())-\(UInt32.random(in: .min ... .max))"
        var variables = invocation.environment
        let location = try invocation.connectionOptions().location
        if !location.isEmpty { variables["DATABASE_URL"] = location }
        variables["MILLRACE_DIRECT_URL"] = invocation.settings.directURL
        variables["MILLRACE_LISTEN"] = "off"
        variables.merge(environment) { $1 }
        let log = open(directory + "/log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(log) }
        var pids: [pid_t] = []
        for number in 0..<count {
            let words =
                ["worker", "--practice", "--marks", directory + "/marks", "--parent", "\(getpid())"]
                + ["--name", "\(label)-\(number)", "--log-level", "warning"] + arguments
            guard let pid = OwnProgram.spawn(words, environment: variables, output: log) else {
                throw Failure("a worker could not be started")
            }
            pids.append(pid)
        }
        let workers = LoadWorkers(pids: pids, directory: directory)
        let deadline = ContinuousClock.now + .seconds(60)
        while try await atWork(label, on: connection) < count {
            guard ContinuousClock.now < deadline, workers.all({ !isGone($0) }) else {
                let said = await workers.giveUp()
                throw Failure("the workers did not come to work: \(said)")
            }
            try await Task.sleep(for: .milliseconds(5))
        }
        return workers
    }

    /// The usage of all workers together; memory is that of the largest.
    func usage() -> Usage {
        var whole = Usage()
        for pid in pids {
            let one = Self.usage(of: pid)
            whole.processor += one.processor
            whole.resident = max(whole.resident, one.resident)
            whole.mostResident = max(whole.mostResident, one.mostResident)
        }
        return whole
    }

    /// Drains the workers and waits for their end. Throws if one did not end well.
    func stop() async throws {
        for pid in pids { kill(pid, SIGTERM) }
        let codes = await wait()
        let said = (try? String(contentsOfFile: directory + "/log", encoding: .utf8)) ?? ""
        try? FileManager.default.removeItem(atPath: directory)
        guard codes.allSatisfy({ $0 == 0 }) else {
            throw Failure("a worker ended badly (\(codes)): \(said.suffix(2000))")
        }
    }

    /// For the way out after an error: ends them, and returns what they said.
    @discardableResult
    func giveUp() async -> String {
        for pid in pids { kill(pid, SIGKILL) }
        _ = await wait()
        let said = (try? String(contentsOfFile: directory + "/log", encoding: .utf8)) ?? ""
        try? FileManager.default.removeItem(atPath: directory)
        return String(said.suffix(2000))
    }

    private static func atWork(_ label: String, on connection: Connection) async throws(PostgresError) -> Int {
        try await connection.query(
            "select count(*) from millrace.session where starts_with(name, $1)", [.text(label)]
        ) { row throws(PostgresError) in Int(try row.int(0)) }.first ?? 0
    }

    private func all(_ condition: (pid_t) -> Bool) -> Bool { pids.allSatisfy(condition) }

    private func wait() async -> [Int32] {
        await Thread.run(name: "load-wait") { [pids] in
            pids.map { pid in
                var status: Int32 = 0
                while waitpid(pid, &status, 0) < 0, errno == EINTR {}
                return status & 0x7f == 0 ? (status >> 8) & 0xff : 128 + (status & 0x7f)
            }
        }
    }

    /// Without collecting it: `wait` does that.
    private static func isGone(_ pid: pid_t) -> Bool {
        var information = siginfo_t()
        return waitid(P_PID, id_t(pid), &information, WEXITED | WNOHANG | WNOWAIT) == 0 && information.si_signo != 0
    }

    private static func usage(of pid: pid_t) -> Usage {
        var usage = Usage()
        if let ticks = ProcessTable.ticks(of: pid) { usage.processor = ticks.own / ProcessTable.ticksPerSecond }
        let resident = ProcessTable.resident(of: pid)
        (usage.resident, usage.mostResident) = (Double(resident.now) / 1_048_576, Double(resident.most) / 1_048_576)
        return usage
    }
}
