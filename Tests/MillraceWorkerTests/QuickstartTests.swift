import Foundation
import Postgres
import TestSupport
import Testing

/// The README shows the code in deploy/examples, which is built with the project.
@Suite struct QuickstartTests {
    private static func read(_ path: String) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    @Test(arguments: [
        "queue/Package.swift", "queue/Sources/queue-worker/main.swift", "shop/Sources/shop-worker/main.swift",
    ])
    func `the README shows the example, file by file`(file: String) throws {
        let example = try Self.read("deploy/examples/\(file)").replacing("../../..", with: "../millrace")
        #expect(try Self.read("README.md").contains("```swift\n\(example)```"))
    }

    @Test func `the first job that the README shows is the queue's alone`() throws {
        let page = try Self.read("README.md")
        let plain = try #require(page.firstRange(of: "import Millrace\n"))
        let complete = try #require(page.firstRange(of: "import MillraceWorker\n"))
        #expect(plain.lowerBound < complete.lowerBound)
    }

    @Test func `a worker of the queue alone links libpq, libcrypto and what Swift needs`() async throws {
        let swift = /lib(swift\w*|_?Foundation\w*|dispatch|BlocksRuntime|c|m|gcc_s|stdc\+\+)\.so.*/
        let linked = try await Program.check("readelf", ["-d", exampleProgram("QueueWorkerExample")])
            .matches(of: /\(NEEDED\).*\[(.*)\]/).map { String($0.1) }
        #expect(linked.contains { $0.hasPrefix("libswiftCore") })
        #expect(
            Set(
                linked.filter { $0.wholeMatch(of: swift) == nil && !$0.hasPrefix("ld-linux") }.map {
                    $0.prefix { $0 != "." }
                })
                == ["libpq", "libcrypto"], "\(linked)")
    }

    /// On an empty database, without any other program of ours.
    @Test func `it makes the schema of the core and does a job`() async throws {
        try await withDatabase(.empty) { database in
            let log = FileManager.default.temporaryDirectory.appending(path: "queue-worker-\(UUID().uuidString)")
            _ = FileManager.default.createFile(atPath: log.path, contents: nil)
            defer { try? FileManager.default.removeItem(at: log) }
            let process = Process()
            process.executableURL = URL(filePath: exampleProgram("QueueWorkerExample"))
            process.environment = ["DATABASE_URL": database.url, "PATH": "/usr/bin:/bin"]
            let sink = try FileHandle(forWritingTo: log)
            (process.standardOutput, process.standardError) = (sink, sink)
            try process.run()
            defer { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }
            func said() -> String { (try? String(contentsOf: log, encoding: .utf8)) ?? "" }
            try await eventually("it has started; it says: \(said())") { said().contains("worker started") }
            let connection = try await database.connect()
            #expect(try await connection.int("select count(*) from millrace.rooms_installed()") == 0)
            try await connection.run("select millrace.enqueue('receipt.send', '{\"order\": 7}')")
            try await eventually("the job is done") {
                try await connection.bool("select exists (select from millrace.history where outcome = 1)")
            }
            await connection.close()
            process.terminate()
            try await eventually("it has drained; it says: \(said())") { !process.isRunning }
            #expect(process.terminationStatus == 0)
            #expect(said().contains("the receipt of order 7, run 1"))
        }
    }

    @Test func `every document with a first worker names the product that serves all rooms`() throws {
        for file in ["README.md", "deploy/README.md", "deploy/millrace.env.example"] {
            #expect(try Self.read(file).contains(file.hasSuffix("example") ? "CompleteWorker" : "MillraceWorker"))
        }
    }
}
