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
                return FileChunks(
                    stride(from: 0, to: bytes.count, by: 7).map { Array(bytes[$0..<min($0 + 7, bytes.count)]) })
            },
            ask: { _ in nil })
    }
}

extension Command {
    /// A verb that does nothing, for trees of tests.
    static func idle(
        _ path: [String], summary: String = "Does nothing", arguments: [Argument] = [], flags: [CommandFlag] = [],
        settings: SettingsUse = .unused
    ) -> Command {
        Command(path, summary: summary, arguments: arguments, flags: flags, settings: settings) { _ in .done }
    }
}

extension Application {
    /// With the verbs of `millrace`.
    static func run(arguments: [String], surroundings: Surroundings, console: Console) async -> ExitCode {
        await run(arguments: arguments, surroundings: surroundings, console: console, tree: Verbs.tree)
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

extension TestDatabase {
    /// A statement on the side of a test.
    func change(_ sql: String) async throws {
        let connection = try await connect()
        try await connection.run(sql)
        await connection.close()
    }
}

func exists(_ path: String) -> Bool { access(path, X_OK) == 0 }
