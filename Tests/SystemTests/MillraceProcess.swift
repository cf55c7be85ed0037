import Foundation
import TestSupport

/// The real executable in a process of its own.
final class MillraceProcess: @unchecked Sendable {  // Process is not Sendable; each is used by one test at a time
    private let process = Process()
    private let log: URL
    private let outbox = FileManager.default.temporaryDirectory.appending(path: "millrace-outbox-\(UUID().uuidString)")

    var pid: pid_t { process.processIdentifier }

    init(
        _ arguments: [String], database url: String, environment extra: [String: String] = [:],
        program: URL = executable
    ) throws {
        log = FileManager.default.temporaryDirectory.appending(path: "millrace-\(UUID().uuidString).log")
        _ = FileManager.default.createFile(atPath: log.path, contents: nil)
        let sink = try FileHandle(forWritingTo: log)
        process.executableURL = program
        process.arguments = arguments
        var environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("MILLRACE_") }
        environment["DATABASE_URL"] = url
        environment["MILLRACE_LISTEN"] = "off"  // many of them run at once
        environment["MILLRACE_MAIL_OUTBOX"] = outbox.path  // and none leaves mails in the checkout
        process.environment = environment.merging(extra) { $1 }
        process.standardError = sink
        process.standardOutput = sink
        process.standardInput = FileHandle.nullDevice
        try process.run()
    }

    deinit {
        if process.isRunning { kill(pid, SIGKILL) }
        try? FileManager.default.removeItem(at: log)
        try? FileManager.default.removeItem(at: outbox)
    }

    /// A worker for the practice kinds, once it has said that it is up.
    static func worker(
        _ name: String, database url: String, slots: Int = 100, _ more: [String] = [],
        environment: [String: String] = [:]
    ) async throws -> MillraceProcess {
        let process = try MillraceProcess(
            ["worker", "--practice", "--name", name, "--slots", "\(slots)"] + more, database: url,
            environment: environment)
        try await eventually("worker \(name) has started; it says: \(process.output)") {
            process.output.contains("worker started") || !process.process.isRunning
        }
        return process
    }

    var output: String {
        (try? String(contentsOf: log, encoding: .utf8)) ?? ""
    }

    var isRunning: Bool { process.isRunning }

    func signal(_ number: Int32) {
        kill(pid, number)
    }

    /// Waits for its end; the exit code, or the signal as a negative number.
    func ended(within limit: Duration = .ample) async throws -> Int32 {
        try await eventually("process \(pid) has ended; it says: \(output)", within: limit) { !process.isRunning }
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }

    /// Beside the test bundle, where the build puts every product.
    static var executable: URL {
        var directory = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        for _ in 0..<6 {
            let candidate = directory.appending(path: "millrace")
            if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
            directory.deleteLastPathComponent()
        }
        return URL(filePath: ".build/debug/millrace")
    }
}

/// Keeps a worker running: starts another when it dies, as a process manager would.
actor Supervised {
    private let start: @Sendable (Int) async throws -> MillraceProcess
    private var current: MillraceProcess?
    private(set) var deaths = 0
    private var task: Task<Void, any Error>?

    init(_ start: @escaping @Sendable (Int) async throws -> MillraceProcess) {
        self.start = start
    }

    func begin() async throws {
        current = try await start(0)
        task = Task { try await watch() }
    }

    private func watch() async throws {
        while !Task.isCancelled {
            if let current, !current.isRunning {
                deaths += 1
                self.current = try await start(deaths)
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// What the process now has in memory.
    var residentKilobytes: Int {
        guard let pid = current?.pid, let status = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") })
        else { return 0 }
        return Int(line.filter(\.isNumber)) ?? 0
    }

    /// Another one is started.
    func kill() {
        current?.signal(SIGKILL)
    }

    /// Asks it to drain, and waits until it has.
    func stop() async throws {
        task?.cancel()
        current?.signal(SIGTERM)
        _ = try await current?.ended()
    }

    func end() {
        task?.cancel()
        current?.signal(SIGKILL)
    }
}
