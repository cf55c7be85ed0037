import FoundationEssentials
import Glibc
import MillraceJobs
import MillraceQueues
import Postgres
import Workers

/// Runs a job that was taken from elsewhere in the developer's own build, and says what came of it.
struct ReplayRun: Sendable {
    let replay: Replay
    let bench: Workbench
    let invocation: Invocation
    /// Of the database here.
    let connection: Connection
    let waitsForDebugger: Bool

    private static let look = Duration.milliseconds(200)
    /// A job that nobody has begun by then is looked into.
    private static let patience = Duration.seconds(30)

    private var console: Console { invocation.console }

    /// True: the build goes on with what is on record, and the run has succeeded or waits.
    func run() async throws -> Bool {
        let pid = try await started()
        let fits = try await rehearse()
        guard let fits else { return false }
        for line in Debugging.advice(pid: pid) { console.print(line) }
        if waitsForDebugger {
            console.note("the job begins once a debugger is attached and lets the worker go on")
            while !Debugging.isTraced(pid) { try await Task.sleep(for: Self.look) }
        }
        let id: Int64
        do {
            id = try await replay.enqueue(on: connection)
        } catch {
            throw DatabaseFailure(error)
        }
        console.print("job \(replay.job.id) runs here as job \(id)", .bold)
        return try await follow(id) && fits
    }

    private func started() async throws -> pid_t {
        while true {
            let pid = await bench.pid
            if pid > 0 { return pid }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// nil: it has no handler for it.
    private func rehearse() async throws -> Bool? {
        let findings: [RehearsalFinding]
        switch try await replay.rehearsed(by: bench.plan, keys: invocation.settings.keys) {
        case .done(let found): findings = found
        case .noHandler:
            console.failure("\(bench.plan.program) has no handler for \(DisplayWidth.harmless(replay.job.kind))")
            return nil
        case .impossible(let why):
            console.warning("not rehearsed: \(DisplayWidth.harmless(why))")
            return true
        }
        for finding in findings {
            console.warning("rehearsed (\(finding.cause.rawValue)): \(DisplayWidth.harmless(finding.sentence))")
        }
        if findings.isEmpty {
            console.print("rehearsed: this build goes on with what is on record")
        } else if !replay.hidden.isEmpty {
            console.note("what is hidden may be the reason; --args gives other arguments")
        }
        return findings.isEmpty
    }

    private func follow(_ id: Int64) async throws -> Bool {
        let began = ContinuousClock.now
        do {
            while true {
                if let job = try await Queue.job(id, on: connection) {
                    switch job.state {
                    case .succeeded, .cancelled, .dead:
                        try await tell(job)
                        return job.state == .succeeded
                    case .scheduled, .blocked:
                        try await tell(job)
                        return true
                    case .ready:
                        let isTraced = Debugging.isTraced(await bench.pid)
                        guard began.duration(to: .now) > Self.patience, !isTraced else { break }
                        let why = try await sentence(of: id) ?? "no worker takes it"
                        console.failure("job \(id) does not begin: \(why)")
                        return false
                    case .running: break
                    }
                }
                try await Task.sleep(for: Self.look)
            }
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
    }

    /// Why it does not run.
    private func sentence(of id: Int64) async throws(PostgresError) -> String? {
        try await Queue.why(id, on: connection).flatMap { try? JSONValue.read($0)["sentence"]?.text }
            .map { DisplayWidth.harmless($0) }
    }

    private func tell(_ job: JobDetail) async throws(PostgresError) {
        let known = Set(replay.steps.map(\.name))
        let names = try await Queue.steps(of: job.id, on: connection).map(\.name).filter { !known.contains($0) }
        if !names.isEmpty {
            console.print("it did: \(names.map { DisplayWidth.harmless($0) }.joined(separator: ", "))")
        }
        if let result = job.result {
            console.print("its result: \(DisplayWidth.harmless(String(decoding: result, as: UTF8.self)))")
        }
        guard job.state.isFinal else {
            let why = try await sentence(of: job.id)
            console.print("job \(job.id) waits\(why.map { ": \($0)" } ?? "")")
            return
        }
        console.print(job.ending, job.style)
    }
}

/// What a debugger needs to know.
enum Debugging {
    static func advice(pid: pid_t, scope: Int? = ptraceScope, isRoot: Bool = geteuid() == 0) -> [String] {
        var lines = [
            "to attach a debugger, in another terminal:",
            "  lldb -p \(pid)      (or gdb -p \(pid)); set breakpoints, then: continue",
        ]
        if let scope, scope > 0, !isRoot {
            lines.append("  where the kernel refuses: sudo sysctl kernel.yama.ptrace_scope=0")
        }
        return lines
    }

    /// Whether somebody has attached to the process.
    static func isTraced(_ pid: pid_t) -> Bool {
        guard let status = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("TracerPid:") })
        else { return false }
        return line.contains { $0.isNumber && $0 != "0" }
    }

    /// nil: this kernel has no such limit.
    static var ptraceScope: Int? {
        guard let text = try? String(contentsOfFile: "/proc/sys/kernel/yama/ptrace_scope", encoding: .utf8) else {
            return nil
        }
        return Int(text.filter(\.isNumber))
    }
}
