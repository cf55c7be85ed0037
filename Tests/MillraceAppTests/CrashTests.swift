import Foundation
import TestSupport
import Testing

@testable import MillraceApp

@Suite struct CrashTests {
    /// The example stands beside this test's program, or where SwiftPM puts it.
    static var example: URL {
        let name = "AppExample"
        let beside = (Bundle.main.executableURL?.deletingLastPathComponent() ?? URL(fileURLWithPath: ".build/debug"))
            .appendingPathComponent(name)
        if FileManager.default.isExecutableFile(atPath: beside.path) { return beside }
        return URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent(".build/debug/\(name)")
    }

    /// Runs it until it has said `lines` lines, and kills it. Returns what it has said in whole lines.
    static func killed(_ steps: [String], after lines: Int, in directory: URL) async throws -> [String] {
        // Reading from a pipe blocks, and the pool of threads is small.
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try run(steps, after: lines, in: directory) })
            }
        }
    }

    private static func run(_ steps: [String], after lines: Int, in directory: URL) throws -> [String] {
        let process = Process()
        process.executableURL = example
        process.arguments = ["http://127.0.0.1:9", "anna", directory.path] + steps
        let said = Pipe()
        process.standardOutput = said
        try process.run()
        var bytes = Data()
        while bytes.count(where: { $0 == 0x0A }) < lines {
            let more = said.fileHandleForReading.availableData
            try #require(!more.isEmpty, "the program has ended by itself")
            bytes += more
        }
        kill(process.processIdentifier, SIGKILL)
        bytes += said.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationReason == .uncaughtSignal)
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            .dropLast().map(String.init)
    }

    @Test func `what a killed program had said is in the queue, in order, and the next one goes on`() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "killed-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        var said: [String] = []
        for lines in [1, 40, 7] {
            said += try await Self.killed(["fill", "1000000"], after: lines, in: directory)
            let log = try OperationLog(directory: directory)
            let found = try await log.open()
            await log.close()
            let kept = found.pending.map(\.id.uuidString)
            // At each kill, one more may be on the disk that it had no time to say.
            #expect(kept.filter(Set(said).contains) == said && found.damaged == 0)
            said = kept
        }
        #expect(said.count >= 48)
    }
}
