package import Foundation
import Threads

/// A program of the system, run to its end. It is waited for on a thread of its own: the pool may have two, and two tests that held one each
/// until a program has its answer from a listener in this process would wait for ever.
package enum Program {
    package struct Outcome: Sendable {
        package let status: Int32
        package let output: Data

        package var text: String { String(decoding: output, as: UTF8.self) }
        package var lines: [String] { text.split(separator: "\n").map(String.init) }
    }

    package struct Failed: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) {
            self.description = description
        }
    }

    /// What it printed, and how it ended. `errors` says whether what it says of them is part of what it printed.
    package static func run(
        _ name: String, _ arguments: [String] = [], input: Data = Data(), errors: Bool = false,
        environment: [String: String]? = nil, in directory: String? = nil
    ) async throws -> Outcome {
        try await Thread.run(name: "program") {
            Result {
                try wait(name, arguments, input: input, errors: errors, environment: environment, in: directory)
            }
        }.get()
    }

    /// What it printed; throws with what it said when it fails.
    @discardableResult
    package static func check(_ name: String, _ arguments: [String] = [], in directory: String? = nil) async throws
        -> String
    {
        let outcome = try await run(name, arguments, errors: true, in: directory)
        guard outcome.status == 0 else {
            throw Failed(description: "\(name) ended with \(outcome.status): \(outcome.text)")
        }
        return outcome.text
    }

    private static func wait(
        _ name: String, _ arguments: [String], input: Data, errors: Bool, environment: [String: String]?,
        in directory: String?
    ) throws -> Outcome {
        let file = FileManager.default.temporaryDirectory.appending(path: "millrace-input-\(UUID().uuidString)")
        try input.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [name] + arguments
        if let environment { process.environment = environment }
        if let directory { process.currentDirectoryURL = URL(filePath: directory) }
        process.standardInput = try FileHandle(forReadingFrom: file)
        let said = Pipe()
        process.standardOutput = said
        process.standardError = errors ? said : FileHandle.nullDevice
        try process.run()
        let output = said.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Outcome(status: process.terminationStatus, output: output)
    }
}
