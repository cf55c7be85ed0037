import Glibc
import Subprocesses
import Threads

/// A developer's own program with a worker: built, run beside the worker of `dev`, and built and started again when a source changes. It owns the
/// processes of both.
actor Workbench {
    struct Plan: Sendable {
        var program: String
        var arguments: [String]
        /// A line for the shell; nil: somebody else builds.
        var build: String?
        var watched: [String]
        /// Of the program.
        var environment: [String: String]
        /// Of the build.
        var buildEnvironment: [String: String]
    }

    private enum Ended {
        case worker
        case other
    }

    private static let pause = Duration.milliseconds(200)
    /// Jobs that run have this long when a new build is there; then they are handed back.
    private static let drain = Duration.seconds(2)
    /// What does not end after that is killed.
    private static let patience = Duration.seconds(15)

    nonisolated let plan: Plan
    private let console: Console
    private let lost: @Sendable (pid_t) -> Void
    private var process: WorkerProcess?
    private var buildProcess: pid_t = 0
    private var isStopping = false

    init(_ plan: Plan, console: Console, lost: @escaping @Sendable (pid_t) -> Void) {
        self.plan = plan
        self.console = console
        self.lost = lost
    }

    /// The process of the program; 0: it does not run.
    var pid: pid_t { process?.pid ?? 0 }

    /// Until `stop`.
    /// - Parameter each: with every new build of the program, once it runs.
    func run(each: @escaping @Sendable () async -> Void) async {
        let sources = SourceWatch(plan.watched)
        var isBuilt = await build()
        while !isStopping {
            guard isBuilt else {
                isBuilt = await nextBuild(sources)
                continue
            }
            isBuilt = await runBuild(sources, each)
        }
    }

    /// One build of the program, until there is a newer one.
    private func runBuild(_ sources: SourceWatch, _ each: @escaping @Sendable () async -> Void) async -> Bool {
        let process = start()
        return await withTaskGroup(of: Ended.self) { group in
            group.addTask {
                _ = await process.run()
                return .worker
            }
            group.addTask {
                await each()
                return .other
            }
            let isBuilt = await nextBuild(sources)
            process.stop()
            group.addTask {
                try? await Task.sleep(for: Self.drain)
                if !Task.isCancelled { process.stop() }
                try? await Task.sleep(for: Self.patience)
                if !Task.isCancelled { process.end() }
                return .other
            }
            for await ended in group where ended == .worker { group.cancelAll() }
            return isBuilt
        }
    }

    /// The program once, with what is to be done with it.
    func once<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        guard await build(goesOn: false) else {
            throw Failure(
                "the build failed",
                hint: "the lines above say why; they are of: \(DisplayWidth.harmless(plan.build ?? ""))")
        }
        let process = start()
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask {
                _ = await process.run()
                return nil
            }
            group.addTask { try await body() }
            let outcome: Result<Value?, any Error>
            do {
                outcome = .success(try await group.next() ?? nil)
            } catch {
                outcome = .failure(error)
            }
            group.cancelAll()
            process.stop()
            while let next = await group.nextResult() { _ = next }
            guard let value = try outcome.get() else { throw Failure("the worker ended before the job") }
            return value
        }
    }

    func stop() {
        isStopping = true
        process?.stop()
        if buildProcess > 0 { kill(-buildProcess, SIGTERM) }
    }

    private func start() -> WorkerProcess {
        let process = WorkerProcess(
            program: plan.program, arguments: plan.arguments, environment: plan.environment,
            say: { [console] text in console.warning(text) }, lost: lost)
        self.process = process
        return process
    }

    /// Waits for a change that builds; false: `stop` came.
    private func nextBuild(_ sources: SourceWatch) async -> Bool {
        while !isStopping {
            try? await Task.sleep(for: Self.pause)
            guard !isStopping, await sources.look() else { continue }
            console.note("a source has changed")
            if await build() { return true }
        }
        return false
    }

    /// - Parameter goesOn: the next change builds again.
    private func build(goesOn: Bool = true) async -> Bool {
        guard let line = plan.build, !isStopping else { return !isStopping }
        console.note("building: \(DisplayWidth.harmless(line))")
        var shell = Subprocess("/bin/sh", ["-c", line])
        shell.environment = plan.buildEnvironment.map { "\($0.key)=\($0.value)" }
        shell.descriptors = [(STDERR_FILENO, STDOUT_FILENO)]
        shell.resetsSignals = true
        guard let pid = try? shell.start() else {
            console.warning("/bin/sh cannot be started")
            return false
        }
        buildProcess = pid
        let began = ContinuousClock.now
        let status = await Thread.run(name: "dev-build") { Subprocess.wait(for: pid) } ?? 1
        buildProcess = 0
        guard !isStopping else { return false }
        guard status == 0 else {
            guard goesOn else { return false }
            console.warning(
                process == nil
                    ? "the build failed; the next change starts it again"
                    : "the build failed; the worker goes on as it is")
            return false
        }
        console.note("built in \(Humane.duration(began.duration(to: .now)))")
        return true
    }
}
