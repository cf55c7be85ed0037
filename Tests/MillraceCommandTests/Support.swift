import Glibc
import Postgres
import Synchronization
import TestSupport

@testable import MillraceCommand

/// A console whose output can be read.
final class Capture: Sendable {
    private let out = Mutex("")
    private let err = Mutex("")
    private let columns: Int?

    init(columns: Int? = nil) { self.columns = columns }

    var output: String { out.withLock { $0 } }
    var errors: String { err.withLock { $0 } }

    var console: Console {
        Console(
            output: Sink(isTerminal: columns != nil, size: { [columns] in columns.map { ($0, 24) } }) { text in
                self.out.withLock { $0 += text }
                return nil
            },
            errors: Sink(isTerminal: columns != nil, size: { [columns] in columns.map { ($0, 24) } }) { text in
                self.err.withLock { $0 += text }
                return nil
            })
    }
}

extension Surroundings {
    /// A world with just these variables and files, in the directory /here.
    static func fake(
        _ environment: [String: String] = [:], files: [String: String] = [:], writable: Bool = true
    ) -> Surroundings {
        Surroundings(
            environment: environment, workingDirectory: "/here", isWritableDirectory: { _ in writable },
            read: { path, _ throws(FileProblem) in
                guard let text = files[path] else { throw FileProblem(complaint: "no such file or directory") }
                return Array(text.utf8)
            },
            chunks: { path throws(FileProblem) in
                guard let text = files[path] else { throw FileProblem(complaint: "no such file or directory") }
                // In pieces that end anywhere, as the system's do.
                let bytes = Array(text.utf8)
                return Chunks(
                    stride(from: 0, to: bytes.count, by: 7).map { Array(bytes[$0..<min($0 + 7, bytes.count)]) })
            },
            ask: { _ in nil })
    }
}

extension Command {
    /// A verb that does nothing, for trees of tests.
    static func idle(
        _ path: [String], summary: String = "Does nothing", arguments: [Argument] = [], flags: [Flag] = [],
        settings: SettingsUse = .unused
    ) -> Command {
        Command(path, summary: summary, arguments: arguments, flags: flags, settings: settings) { _ in .done }
    }
}

struct Outcome {
    let code: ExitCode
    let output: String
    let errors: String
}

func millrace(
    _ arguments: String..., environment: [String: String] = [:], files: [String: String] = [:], writable: Bool = true,
    columns: Int? = nil, tree: CommandTree = Verbs.tree
) async -> Outcome {
    let capture = Capture(columns: columns)
    let code = await Application.run(
        arguments: arguments, surroundings: .fake(environment, files: files, writable: writable),
        console: capture.console, tree: tree)
    return Outcome(code: code, output: capture.output, errors: capture.errors)
}

/// Runs a program of the system with a script on its standard input, and gives what it printed.
func shell(_ program: String, _ arguments: [String] = [], script: String) throws -> (status: Int32, output: String) {
    let path = "/tmp/millrace-command-test-\(getpid())-\(UInt64.random(in: .min ... .max))"
    defer { for suffix in ["", ".out"] { unlink(path + suffix) } }
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    _ = Descriptor.write(Array(script.utf8), to: descriptor)
    close(descriptor)
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, path, O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, path + ".out", O_WRONLY | O_CREAT, 0o600)
    posix_spawn_file_actions_adddup2(&actions, 1, 2)
    let settings: [String] = ["PATH=/usr/bin:/bin", "HOME=/tmp", "TERM=dumb"]
    var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var variables: [UnsafeMutablePointer<CChar>?] = settings.map { strdup($0) } + [nil]
    defer { for variable in variables { free(variable) } }
    var child = pid_t()
    let started = posix_spawn(&child, program, &actions, nil, &words, &variables)
    guard started == 0 else { throw Failure("\(program) did not start: \(Descriptor.sentence(started))") }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
    let bytes = try Surroundings.live().read(path + ".out", 1 << 20)
    return (status, String(decoding: bytes, as: UTF8.self))
}

extension TestDatabase {
    /// A statement on the side of a test.
    func change(_ sql: String) async throws {
        let connection = try await connect()
        try await connection.run(sql)
        await connection.close()
    }
}

func exists(_ path: String) -> Bool { access(path, X_OK) == 0 }
