import Foundation
import Postgres
import TestSupport
import Testing

/// `millrace dev` with a developer's own program.
@Suite struct DevProgramTests {
    private static let load = MillraceProcess.executable.deletingLastPathComponent().appending(path: "millrace-load")

    private func folder() throws -> URL {
        let url = FileManager.default.temporaryDirectory.appending(path: "workbench-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        // A private Postgres runs as another user.
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: url.path)
        return url
    }

    private func write(_ text: String, to url: URL) throws {
        try Data(text.utf8).write(to: url)
    }

    @Test func `a program is built and started again when its source changes, and goes on where a build fails`()
        async throws
    {
        try await withDatabase { database in
            let folder = try folder()
            defer { try? FileManager.default.removeItem(at: folder) }
            let (source, heard) = (folder.appending(path: "source"), folder.appending(path: "heard"))
            func program(_ word: String) -> String {
                "#!/bin/sh\nprintf '%s %s %s\\n' \(word) $$ \"$DATABASE_URL\" >> \(heard.path)\nexec sleep 600\n"
            }
            func lines() -> [[String]] {
                let text = (try? String(contentsOf: heard, encoding: .utf8)) ?? ""
                return text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
            }
            func lives(_ line: [String]) -> Bool { kill(pid_t(line[1]) ?? 0, 0) == 0 }
            try write(program("one"), to: source)
            let built = folder.appending(path: "program").path
            let dev = try MillraceProcess(
                [
                    "dev", "--database-url", database.url, "--with", built, "--watch", source.path, "--build",
                    "sh -n \(source.path) && cp \(source.path) \(built) && chmod +x \(built)",
                ], database: database.url, environment: ["MILLRACE_LISTEN": "127.0.0.1:18479"])
            try await eventually("the first build runs; dev says: \(dev.output)") { lines().count == 1 }
            #expect(lines()[0][0] == "one" && lines()[0][2] == database.url)
            #expect(dev.output.hasPrefix("The console: http://127.0.0.1:18479/console"), "\(dev.output)")

            try write("if this is no program\n", to: source)
            try await eventually("the build has failed; dev says: \(dev.output)") {
                dev.output.contains("the build failed; the worker goes on as it is")
            }
            #expect(lives(lines()[0]))

            try write(program("two"), to: source)
            try await eventually("the new build runs; dev says: \(dev.output)") { lines().count == 2 }
            #expect(lines()[1][0] == "two" && !lives(lines()[0]))
            dev.signal(SIGTERM)
            #expect(try await dev.ended() == 0, "\(dev.output)")
            #expect(!lives(lines()[1]))
        }
    }

    struct Example: Sendable {
        var program: String
        var argument: String?
        var kind = "receipt.send"
        var args = #"{"order": 7}"#
        var said = ["the receipt of order 7, run 1"]
    }

    /// The first of them makes its schema before its worker runs, as the README shows it. `deploy/checks/replays` does it with all examples.
    @Test(arguments: [
        Example(program: "QueueWorkerExample"), Example(program: "ShopWorkerExample"),
        Example(
            program: "WorkflowsExample", argument: "work", kind: "order.place", args: #"{"number": 7, "item": "lamp"}"#,
            said: ["order 7: the card is charged", "it did: pay, reserve", "waits: "]),
    ])
    func `a job of an example is replayed`(example: Example) async throws {
        try await withDatabase { database in
            let folder = try folder()
            defer { try? FileManager.default.removeItem(at: folder) }
            let connection = try await database.connect()
            let id = try await connection.int("select millrace.enqueue('\(example.kind)', '\(example.args)')")
            await connection.close()
            let program = MillraceProcess.executable.deletingLastPathComponent().appending(path: example.program)
            let more = example.argument.map { ["--arg", $0] } ?? []
            let dev = try MillraceProcess(
                ["dev", "--with", program.path, "--replay", "\(id)", "--once"] + more, database: database.url,
                environment: ["MILLRACE_DIR": folder.path])
            #expect(try await dev.ended(within: .seconds(300)) == 0, "\(dev.output)")
            #expect(dev.output.contains("rehearsed: this build goes on with what is on record"))
            for text in example.said { #expect(dev.output.contains(text), "\(dev.output)") }
        }
    }

    /// As one in another language, or one with rooms, which needs its database to start.
    @Test func `where a program cannot be rehearsed, dev says so and runs the job all the same`() async throws {
        try await withDatabase { database in
            let folder = try folder()
            defer { try? FileManager.default.removeItem(at: folder) }
            let connection = try await database.connect()
            let id = try await connection.int("select millrace.enqueue('practice.nothing', '{}')")
            await connection.close()
            let program = folder.appending(path: "program")
            try write(
                "#!/bin/sh\n[ \"$DATABASE_URL\" ] || { echo it has no database >&2; exit 3; }\nexec sleep 600\n",
                to: program)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program.path)
            // The worker of dev itself takes the job.
            let dev = try MillraceProcess(
                ["dev", "--with", program.path, "--replay", "\(id)", "--once"], database: database.url,
                environment: ["MILLRACE_DIR": folder.path])
            #expect(try await dev.ended(within: .seconds(300)) == 0, "\(dev.output)")
            #expect(
                dev.output.contains("not rehearsed: ") && dev.output.contains("it has no database"), "\(dev.output)")
            #expect(dev.output.contains("succeeded"), "\(dev.output)")
        }
    }

    @Test func `a program ends with a dev that is killed`() async throws {
        try await withDatabase { database in
            let folder = try folder()
            defer { try? FileManager.default.removeItem(at: folder) }
            let (program, heard) = (folder.appending(path: "program"), folder.appending(path: "heard"))
            try write("#!/bin/sh\nprintf '%s %s\\n' $$ \"$*\" > \(heard.path)\nexec sleep 600\n", to: program)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program.path)
            let dev = try MillraceProcess(
                ["dev", "--database-url", database.url, "--with", program.path, "--arg", "a b"], database: database.url)
            func words() -> [Substring] {
                ((try? String(contentsOf: heard, encoding: .utf8)) ?? "").split(
                    maxSplits: 1, whereSeparator: \.isWhitespace)
            }
            try await eventually("it runs; dev says: \(dev.output)") { words().count == 2 }
            let pid = try #require(pid_t(words()[0]))
            #expect(words()[1] == "a b\n" && kill(pid, 0) == 0)
            dev.signal(SIGKILL)
            _ = try await dev.ended()
            try await eventually("it has ended") { kill(pid, 0) != 0 }
        }
    }

    @Test func `where the one build fails, dev says what to read`() async throws {
        try await withDatabase { database in
            let dev = try MillraceProcess(
                [
                    "dev", "--database-url", database.url, "--with", "/nowhere", "--watch", "/tmp", "--once", "--build",
                    "echo no such module; exit 3",
                ], database: database.url)
            #expect(try await dev.ended() == 1, "\(dev.output)")
            #expect(dev.output.contains("no such module") && dev.output.contains("the lines above say why"))
            #expect(!dev.output.contains("the next change"), "\(dev.output)")
        }
    }

    /// A program with one handler that does the named steps.
    private func handlers(_ steps: [String], in folder: URL) throws -> [String: String] {
        let path = folder.appending(path: "handlers-\(steps.joined()).json")
        let body = steps.map {
            """
            {"sort": "step", "name": "\($0)", "type": "int", "signal": "", "field": "", "child": "", "seconds": 0, \
            "negated": false, "value": 7, "parts": [], "otherwise": []}
            """
        }
        let fields = [("n", "int"), ("password", "text")].map {
            #"{"name": "\#($0.0)", "type": "\#($0.1)", "isOptional": false}"#
        }.joined(separator: ",")
        let one = #"{"kind": "order.place", "fields": [\#(fields)], "body": [\#(body.joined(separator: ","))]}"#
        let others = (1..<10).map { #"{"kind": "other\#($0)", "fields": [], "body": []}"# }
        try write("[\(([one] + others).joined(separator: ","))]", to: path)
        return ["MILLRACE_LOAD_HANDLERS": path.path]
    }

    @Test
    func
        `a job of another database is replayed here with its steps and without its secrets, after rehearsal's checks; nothing is written there`()
        async throws
    {
        try await withDatabase { database in
            let folder = try folder()
            defer { try? FileManager.default.removeItem(at: folder) }
            let connection = try await database.connect()
            let id = try await connection.int(
                #"select millrace.enqueue('order.place', '{"n": 1, "password": "hunter2"}', tags => '{vip}')"#)
            try await connection.run("select millrace.step_set(\(id), 'reserve', '7', true)")
            let before = try await connection.value("select j::text from millrace.jobs j where id = \(id)")
            func replay(_ steps: [String], _ more: [String] = []) async throws -> (code: Int32, output: String) {
                let environment = try handlers(steps, in: folder).merging(
                    ["MILLRACE_DIR": folder.path], uniquingKeysWith: { $1 })
                let dev = try MillraceProcess(
                    ["dev", "--with", Self.load.path, "--replay", "\(id)", "--once"] + more, database: database.url,
                    environment: environment)
                return (try await dev.ended(within: .seconds(300)), dev.output)
            }
            let (code, output) = try await replay(["reserve", "charge"])
            #expect(code == 0, "\(output)")
            #expect(output.contains("hidden by the rules there: args.password") && !output.contains("hunter2"))
            #expect(output.contains("rehearsed: this build goes on with what is on record"))
            #expect(output.contains("lldb -p ") && output.contains("it did: charge") && output.contains("succeeded"))

            // A build that cannot go on with what is on record.
            let (other, said) = try await replay(["check", "reserve"])
            #expect(other == 1 && said.contains("rehearsed (other_step)"), "\(said)")
            #expect(said.contains("what is hidden may be the reason"))

            let after = try await connection.value("select j::text from millrace.jobs j where id = \(id)")
            #expect(after == before)
            #expect(try await connection.int("select count(*) from millrace.job") == 1)
            await connection.close()
        }
    }
}
