import Foundation
import Postgres
import TestSupport
import Testing

/// A new build that is rehearsed on what is on record.
@Suite struct RehearseTests {
    private static let load = MillraceProcess.executable.deletingLastPathComponent().appending(path: "millrace-load")

    private func run(
        _ program: URL, _ arguments: [String], database url: String, environment: [String: String] = [:]
    ) async throws -> (code: Int32, output: String) {
        let process = try MillraceProcess(arguments, database: url, environment: environment, program: program)
        return (try await process.ended(within: .seconds(300)), process.output)
    }

    @Test func `changes that jobs under way cannot bear are found, and no other is named`() async throws {
        try await withDatabase { database in
            let (code, output) = try await run(
                Self.load, ["load", "rehearse", "--changes", "20", "--strict", "--json"], database: database.url)
            #expect(code == 0, "\(output)")
            #expect(
                output.contains("\"measured\": \"100.0 %\"") || output.contains("\"measured\": \"100 %\""), "\(output)")
        }
    }

    @Test
    func
        `a job under way whose arguments the new build cannot read is named, with exit 1; a program that is no build is misuse`()
        async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            // Ten kinds that the load program handles when it is told so by a file of descriptions.
            let path = FileManager.default.temporaryDirectory.appending(path: "handlers-\(UUID().uuidString).json")
            defer { try? FileManager.default.removeItem(at: path) }
            let handlers = (0..<10).map {
                #"{"kind": "k\#($0)", "fields": [{"name": "n", "type": "int", "isOptional": false}], "body": []}"#
            }
            try Data("[\(handlers.joined(separator: ","))]".utf8).write(to: path)
            let bad = try await connection.int(
                #"select millrace.enqueue('k1', '{"n": "text"}')"#)
            try await connection.run(#"select millrace.enqueue('k1', '{"n": 1}')"#)
            try await connection.run("select millrace.enqueue('other', '{}')")
            let (code, text) = try await run(
                MillraceProcess.executable,
                ["rehearse", "--with", Self.load.path, "--env", "MILLRACE_LOAD_HANDLERS", "--json"],
                database: database.url, environment: ["MILLRACE_LOAD_HANDLERS": path.path])
            #expect(code == 1)
            #expect(text.contains("\"cause\": \"arguments\"") && text.contains("\"rehearsed\": 2"), "\(text)")
            #expect(text.contains("\(bad)"))
            let none = try await run(
                MillraceProcess.executable, ["rehearse", "--with", "/bin/true"], database: database.url)
            #expect(none.code == 2)
            await connection.close()
        }
    }
}
